//go:build protogen

// Command protogen writes the Go code of the plugin contract from sdk/pluginv1/plugin.proto, without protoc.
//
// It compiles the proto file in process and runs protoc-gen-go and protoc-gen-go-grpc in the versions that
// tools/proto.mod pins. Run it from the root of the repository:
//
//	go run -modfile=tools/proto.mod -tags protogen ./tools/protogen          # write the files
//	go run -modfile=tools/proto.mod -tags protogen ./tools/protogen -check   # exit 1 when they are not current
//
// The build tag keeps it out of ./..., whose go.mod does not know the proto compiler.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	folder = "sdk/pluginv1"
	source = "plugin.proto"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail when the generated files are not current")
	flag.Parse()
	if err := run(context.Background(), *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool) error {
	request, err := compile(ctx)
	if err != nil {
		return fmt.Errorf("compiling %s/%s: %w", folder, source, err)
	}
	var stale []string
	for _, generator := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		files, err := generate(ctx, generator, request)
		if err != nil {
			return fmt.Errorf("running %s: %w", generator, err)
		}
		for _, f := range files {
			name := filepath.Join(folder, f.GetName())
			if check {
				if old, err := os.ReadFile(name); err != nil || string(old) != f.GetContent() {
					stale = append(stale, name)
				}
				continue
			}
			if err := os.WriteFile(name, []byte(f.GetContent()), 0o644); err != nil {
				return fmt.Errorf("writing generated code: %w", err)
			}
		}
	}
	if stale != nil {
		return fmt.Errorf("not current: %v; run `make generate` and commit the result", stale)
	}
	return nil
}

// compile turns the proto file and what it imports into the request that the generators read.
func compile(ctx context.Context) ([]byte, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{folder}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // the generators copy the comments
	}
	files, err := compiler.Compile(ctx, source)
	if err != nil {
		return nil, err
	}
	var descriptors []*descriptorpb.FileDescriptorProto
	for _, f := range files {
		descriptors = append(descriptors, protoutil.ProtoFromFileDescriptor(f))
	}
	return proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{source},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      descriptors,
	})
}

// generate runs one generator as protoc would: request on its stdin, response on its stdout.
func generate(ctx context.Context, tool string, request []byte) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile=tools/proto.mod", tool)
	cmd.Stdin = bytes.NewReader(request)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if response.GetError() != "" {
		return nil, errors.New(response.GetError())
	}
	return response.GetFile(), nil
}

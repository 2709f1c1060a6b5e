package wire

import "strconv"

// Language is the implementation a peer says it is (LanguageCode; remoting-protocol.md 1.5).
type Language uint8

// The language codes.
const (
	LanguageJava Language = iota
	LanguageCPP
	LanguageDotNet
	LanguagePython
	LanguageDelphi
	LanguageErlang
	LanguageRuby
	LanguageOther
	LanguageHTTP
	LanguageGo
	LanguagePHP
	LanguageOMS
	LanguageRust
	LanguageNodeJS

	// LanguageUnknown stands for a name that is in no table. It is left out of JSON headers.
	LanguageUnknown Language = 255
)

// String returns the language's name on the wire, or its number when it has none.
func (l Language) String() string {
	if name := l.name(); name != "" {
		return name
	}
	return strconv.Itoa(int(l))
}

func (l Language) name() string {
	switch l {
	case LanguageJava:
		return "JAVA"
	case LanguageCPP:
		return "CPP"
	case LanguageDotNet:
		return "DOTNET"
	case LanguagePython:
		return "PYTHON"
	case LanguageDelphi:
		return "DELPHI"
	case LanguageErlang:
		return "ERLANG"
	case LanguageRuby:
		return "RUBY"
	case LanguageOther:
		return "OTHER"
	case LanguageHTTP:
		return "HTTP"
	case LanguageGo:
		return "GO"
	case LanguagePHP:
		return "PHP"
	case LanguageOMS:
		return "OMS"
	case LanguageRust:
		return "RUST"
	case LanguageNodeJS:
		return "NODE_JS"
	default:
		return ""
	}
}

// ParseLanguage returns the language called name, LanguageUnknown for a name nobody uses.
func ParseLanguage(name string) Language {
	for l := LanguageJava; l <= LanguageNodeJS; l++ {
		if l.name() == name {
			return l
		}
	}
	return LanguageUnknown
}

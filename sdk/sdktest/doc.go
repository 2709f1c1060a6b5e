// Package sdktest tests a plugin without streamd: in process, or as the binary that streamd would start.
//
//	func TestInvoice(t *testing.T) {
//		spec := sdk.Component("invoice", newInvoice)
//		sdktest.Run(t, spec, `{"currency":"EUR"}`) // what every component must do
//
//		h := sdktest.Start(t, spec).Configure("invoice", `{"currency":"EUR"}`)
//		got := h.Deliver(sdktest.Message{ID: "1", Body: []byte("42")})
//		if got[0].Kind != sdktest.Acked { t.Error(got[0]) }
//	}
//
// Messages cross the same gRPC frames as in production; only the process is saved. RunBinary and StartBinary have it too.
// All helpers fail the test themselves and clean up with it.
package sdktest

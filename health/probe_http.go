package health

import (
	"context"
	"net/http"

	"virdeck/model"
)

// probeHTTP asks as a client of a forward proxy does: with an absolute-form
// request target (RFC 9112, 3.2.2).
func probeHTTP(ctx context.Context, dial DialFunc, s Subject, t Target) model.ProbeResult {
	e, r := openHop(ctx, dial, s)
	if e == nil {
		return r
	}
	defer e.close()
	req, err := request(ctx, t)
	if err != nil {
		return fault(model.CulpritUs, "request", err)
	}
	if !s.Creds.Empty() {
		req.Header.Set("Proxy-Authorization", authorization(s.Creds))
	}
	if err := req.WriteProxy(e); err != nil {
		return replyFault(ctx, "the request", err)
	}
	resp, err := http.ReadResponse(e.r, req)
	if err != nil {
		return replyFault(ctx, "the request", err)
	}
	if r, own := statusFault(resp); own {
		_ = resp.Body.Close()
		return r
	}
	return finish(ctx, resp, t)
}

// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"

	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// NoopCommand is the first argument of the process that is the no-op webhook; the others are its address and the folder with its
// certificate. It is the same program.
const NoopCommand = "serve-noop"

// paths are those that are asked for what is measured.
var paths = []string{
	"/mutate-application", "/validate-application", "/mutate-release", "/validate-release",
	"/validate-installationtarget", "/validate-capacitytarget", "/validate-traffictarget",
	"/mutate-rolloutblock", "/validate-rolloutblock", "/mutate-approval", "/validate-approval",
}

// ServeNoop allows everything, with the server that Shipper's webhook has.
func ServeNoop(ctx context.Context, address, certDir string) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: host, Port: port, CertDir: certDir})
	for _, path := range paths {
		server.Register(path, &admission.Webhook{Handler: admission.HandlerFunc(
			func(context.Context, admission.Request) admission.Response {
				var allowed admission.Response
				allowed.Allowed = true
				return allowed
			})})
	}
	if err := server.Start(ctx); err != nil && ctx.Err() == nil && err != http.ErrServerClosed { //nolint:errorlint // as it is returned
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

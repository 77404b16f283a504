// SPDX-License-Identifier: Apache-2.0

// Command serve is a real OCI registry for tests of other modules, on a port of its own and in memory. It says on its standard
// output where it listens, lets in only who has the name and the password it is given, and ends when its standard input does.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
)

func main() {
	name := flag.String("username", "ann", "Who is let in.")
	password := flag.String("password", "", "By what.")
	flag.Parse()
	if err := serve(*name, *password); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(name, password string) error {
	config := &configuration.Configuration{Storage: configuration.Storage{"inmemory": {}}}
	config.Log.Level, config.Log.AccessLog.Disabled = "error", true
	registry := handlers.NewApp(context.Background(), config)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gotName, got, _ := r.BasicAuth(); gotName != name || got != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		registry.ServeHTTP(w, r)
	}))
}

// SPDX-License-Identifier: Apache-2.0

// Up starts a fleet to play with. Work in progress.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"shipper.dev/shipper/test/fleet"
)

func main() {
	f, err := fleet.Start(context.Background(), fleet.Options{Applications: []string{"eu-west-1", "us-east-1"}, Progress: os.Stderr})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(f.Kubeconfig)
	b := make([]byte, 1)
	os.Stdin.Read(b)
	t := time.Now()
	fmt.Println(f.Stop(), time.Since(t))
}

// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestNamesOfClientsNeedAnAuthority(t *testing.T) {
	_, err := parse([]string{"--client-names=kube-apiserver"})
	if err == nil || err.Error() != "--client-names needs --client-ca-file" {
		t.Errorf("got %v", err)
	}
	o, err := parse([]string{"--client-ca-file=/nonexistent", "--client-names=a, b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.clients(); err == nil {
		t.Error("a file that is not there was taken")
	}
	if o, err = parse(nil); err != nil {
		t.Fatal(err)
	}
	if clients, err := o.clients(); clients != nil || err != nil {
		t.Errorf("by default only %v may ask (%v)", clients, err)
	}
}

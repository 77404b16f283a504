// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestTheManagementClusterIsAskedAsAnother(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Clusters["a"], config.AuthInfos["a"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}, &clientcmdapi.AuthInfo{}
	config.Contexts["a"], config.CurrentContext = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}, "a"
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	f := Flags{Kubeconfig: path, As: "ann", AsGroups: []string{"dev"}}
	management, err := f.Management()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rest.ImpersonationConfig{UserName: "ann", Groups: []string{"dev"}}, management.Impersonate); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	member, err := f.Config("a")
	if err != nil || member.Impersonate.UserName != "" {
		t.Errorf("another cluster is asked as %q, %v", member.Impersonate.UserName, err)
	}
	f.As = ""
	if _, err := f.Management(); ExitCode(err) != Misused {
		t.Errorf("a group without a user: %v", err)
	}
}

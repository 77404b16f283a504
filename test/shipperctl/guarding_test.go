// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// guardIs compares, in every policy, the group that it refuses nothing and the accounts that are Shipper's.
func guardIs(t *testing.T, group string, accounts ...string) {
	t.Helper()
	list := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
	if err := application(t, west).List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	says := fmt.Sprintf("%q !(request.userInfo.username in [", group)
	for i, account := range accounts {
		if i > 0 {
			says += ", "
		}
		says += fmt.Sprintf("%q", "system:serviceaccount:"+account)
	}
	want, got := map[string]string{}, map[string]string{}
	for _, name := range policyNames {
		want[name+ofGuard] = says + "])"
	}
	for _, p := range list.Items {
		for _, v := range p.Spec.Variables {
			if v.Name == "breakGlassGroup" {
				got[p.Name] = v.Expression
			}
		}
		for _, c := range p.Spec.MatchConditions {
			if c.Name == "not-shipper" {
				got[p.Name] += " " + c.Expression
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the guard (-want +got)\n%s", diff)
	}
}

// forges tries, without making anything, to make a Pod that passes for Shipper's, until the answer is as wanted: an API
// server learns of policies a moment after they are written.
func forges(t *testing.T, want string) {
	t.Helper()
	c := client.NewDryRunClient(application(t, west))
	eventually(t, func() string {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "forged", Labels: map[string]string{"shipper-app": "web"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}},
		}
		err := c.Create(t.Context(), pod)
		if got := map[bool]string{true: "passes", false: "is refused"}[err == nil]; got != want {
			return fmt.Sprintf("a forged Pod %s: %v", got, err)
		}
		return ""
	})
}

// settle waits until a cluster has checked the types in policies, which it writes into their status.
func settle(t *testing.T, c client.Client) {
	t.Helper()
	eventually(t, func() string {
		list := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
		if err := c.List(t.Context(), list); err != nil {
			return err.Error()
		}
		for _, p := range list.Items {
			if p.Status.ObservedGeneration != p.Generation {
				return p.Name + " is not checked"
			}
		}
		return ""
	})
}

// withoutPolicies writes a kubeconfig that knows the fleet and, as `old`, an application cluster that answers for
// ValidatingAdmissionPolicies what it answers for any kind it does not serve.
func withoutPolicies(t *testing.T) string {
	t.Helper()
	var target *rest.Config
	for _, c := range fleetOf(t).Applications {
		if c.Name == west {
			target = c.Config
		}
	}
	transport, err := rest.TransportFor(target)
	if err != nil {
		t.Fatal(err)
	}
	at, err := neturl.Parse(target.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.Out.URL.Path = strings.Replace(r.Out.URL.Path, "/v1/validatingadmissionpolic", "/v1/unknown", 1)
	}}
	server := httptest.NewTLSServer(proxy)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	config, err := clientcmd.LoadFromFile(fleetOf(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["old"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
	config.AuthInfos["old"] = &clientcmdapi.AuthInfo{}
	config.Contexts["old"] = &clientcmdapi.Context{Cluster: "old", AuthInfo: "old"}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

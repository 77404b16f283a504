// SPDX-License-Identifier: Apache-2.0

package outward

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a name resolves to may differ each time: it is the connection that is refused.
func TestNamesThatLeadToTheMachineItselfAreNotConnectedTo(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// The one name that resolves to this machine everywhere, through a policy that knows nothing of the name.
	p := mustPolicy(t, "http://*:*")
	_, err = p.dial(nil)(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	if why, ok := errors.AsType[*Denied](err); !ok || !strings.HasPrefix(why.Error(), "localhost is at ") {
		t.Errorf("got %v", err)
	}
	if connection, err := p.dial(map[string]bool{"localhost:" + port: true})(t.Context(), "tcp", "localhost:"+port); err != nil {
		t.Errorf("a proxy: %v", err)
	} else {
		_ = connection.Close()
	}
	if _, err := p.dial(nil)(t.Context(), "tcp", "nothing"); err == nil {
		t.Error("what is no address was connected to")
	}
	if asked {
		t.Error("the server was asked")
	}
}

func TestRedirects(t *testing.T) {
	p := mustPolicy(t, "https://*:*, http://charts.internal")
	request := func(text string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for sentence, tc := range map[string]struct {
		to   string
		via  []string
		want string
	}{
		"to another host": {to: "https://b", via: []string{"https://a"}},
		"from http up":    {to: "https://b", via: []string{"http://charts.internal"}},
		"from https down": {
			to: "http://charts.internal", via: []string{"http://charts.internal", "https://a"}, want: "redirected from https to http",
		},
		"to a URL that is not allowed": {to: "http://other?token=x", via: []string{"http://charts.internal"},
			want: "redirected to http://other?…: " +
				"charts may be fetched only from https://*:*, http://charts.internal; use such a URL, " +
				"or ask an administrator of Shipper to add this one (--chart-repositories)"},
		"to a metadata service": {to: "https://169.254.169.254/latest", via: []string{"https://a"}, want: "redirected to " +
			"https://169.254.169.254/latest: 169.254.169.254 is a link-local address, which charts are not fetched from"},
		"to another scheme": {to: "file:///etc/passwd", via: []string{"https://a"}, want: "redirected from https to file"},
		"the fifth":         {to: "https://b", via: strings.Fields(strings.Repeat("https://a ", 5))},
		"the sixth":         {to: "https://b", via: strings.Fields(strings.Repeat("https://a ", 6)), want: "redirected more than 5 times"},
	} {
		var via []*http.Request
		for _, text := range tc.via {
			via = append(via, request(text))
		}
		got := ""
		if err := p.Redirect(request(tc.to), via); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s gives %q, want %q", sentence, got, tc.want)
		}
	}
}

func TestProxiesOfTheEnvironment(t *testing.T) {
	choose := func(r *http.Request) (*url.URL, error) {
		return url.Parse(map[string]string{"http": "http://proxy", "https": "socks5://127.0.0.1:1081"}[r.URL.Scheme])
	}
	if diff := cmp.Diff(map[string]bool{"proxy:80": true, "127.0.0.1:1081": true}, proxies(choose)); diff != "" {
		t.Errorf("proxies (-want +got):\n%s", diff)
	}
	none := func(*http.Request) (*url.URL, error) { return nil, errors.New("none") }
	if got := proxies(none); len(got) > 0 {
		t.Errorf("without any there are %v", got)
	}
}

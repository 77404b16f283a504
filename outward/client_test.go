// SPDX-License-Identifier: Apache-2.0

package outward

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// plain lists the test's own servers.
const plain = "http://127.0.0.1:*, https://127.0.0.1:*"

// clientOf is a client of the test's own servers.
func clientOf(t *testing.T, c Credentials) *http.Client {
	t.Helper()
	client, err := NewClient(mustPolicy(t, plain), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// get requests a URL and reads the answer.
func get(t *testing.T, client *http.Client, url string) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func TestCredentialsAreSent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	for want, data := range map[string]map[string][]byte{
		"":                   {},
		"Bearer hush":        {"token": []byte("hush\n")},
		"Basic YW5uOmh1c2g=": {"username": []byte("ann"), "password": []byte("hush")},
		"Basic YW5uOg==":     {"username": []byte("ann")},
	} {
		if _, got, err := get(t, clientOf(t, CredentialsOf(data)), server.URL); err != nil || got != want {
			t.Errorf("%v sends %q, %v, want %q", data, got, err, want)
		}
	}
}

func TestCredentialsThatAreNotValid(t *testing.T) {
	for sentence, tc := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"two ways":            {map[string][]byte{"username": {'a'}, "token": {'b'}}, "has both token and username: leave one of them out"},
		"no user":             {map[string][]byte{"password": []byte("hush")}, "has password without username"},
		"no authority":        {map[string][]byte{"ca.crt": []byte("hush")}, "has no certificate in PEM under ca.crt"},
		"no key":              {map[string][]byte{"tls.crt": {'a'}}, "has no certificate and its key, in PEM, under tls.crt and tls.key"},
		"a key without a use": {map[string][]byte{"tls.key": []byte("hush")}, ""},
	} {
		_, err := NewClient(Policy{}, CredentialsOf(tc.data))
		if (err == nil) != (tc.want == "") || (err != nil && err.Error() != tc.want) {
			t.Errorf("%s gives %v, want %q", sentence, err, tc.want)
		}
	}
}

func TestCertificatesAreUsed(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	template.Subject.CommonName = "shipper"
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	of := func(kind string, bytes []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
	}
	c := Credentials{
		CA: of("CERTIFICATE", server.Certificate().Raw), Certificate: of("CERTIFICATE", certificate), Key: of("PRIVATE KEY", der),
	}
	if _, got, err := get(t, clientOf(t, c), server.URL); err != nil || got != "shipper" {
		t.Errorf("with an authority and a certificate: %q, %v", got, err)
	}
	_, _, err = get(t, clientOf(t, Credentials{}), server.URL)
	if err == nil || Show(err) != "tls: failed to verify certificate: x509: certificate signed by unknown authority" {
		t.Errorf("without: %v", err)
	}
}

func TestAClientRequestsOnlyAllowedURLs(t *testing.T) {
	requested := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = requested || r.URL.Path != "/redirect"
		http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
	}))
	t.Cleanup(server.Close)
	client, err := NewClient(mustPolicy(t, server.URL+"/redirect, http://*:80"), Credentials{Token: "hush"})
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		server.URL + "/other?hush":        "charts may be fetched only from",
		server.URL + "/redirect/../x":     "its path has a segment",
		"http://169.254.169.254/hush":     "169.254.169.254 is a link-local address, which charts are not fetched from",
		"http://me:hush@localhost/":       "localhost is a name of the machine itself, which charts are not fetched from",
		"https://charts.example.com/hush": "charts may be fetched only from",
	} {
		_, _, err := get(t, client, url)
		if _, denied := errors.AsType[*Denied](err); !denied || !strings.HasPrefix(Show(err), want) || strings.Contains(Show(err), "hush") {
			t.Errorf("%s gives %v, want %q", url, err, want)
		}
	}
	if requested {
		t.Error("a URL that is not allowed was requested")
	}
	if status, _, err := get(t, client, server.URL+"/redirect"); err != nil || status != http.StatusFound {
		t.Errorf("a redirect gives %d, %v", status, err)
	}
}

// resolveTo answers every look-up of a name with addr.
func resolveTo(t *testing.T, addr [4]byte) {
	t.Helper()
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go answerQueries(ours, addr)
		return theirs, nil
	}}
}

// answerQueries is a name server over a stream. The answer repeats the question; only those for IPv4 have a record.
func answerQueries(conn net.Conn, addr [4]byte) {
	defer conn.Close()
	for {
		length := make([]byte, 2)
		if _, err := io.ReadFull(conn, length); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		end := 12 // of the question: a name that ends with 0, its type and its class
		for query[end] != 0 {
			end += int(query[end]) + 1
		}
		kind := binary.BigEndian.Uint16(query[end+1:])
		answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end+5]...)
		if kind == 1 {
			answer[7] = 1
			answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, addr[0], addr[1], addr[2], addr[3])
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func TestANameThatResolvesToAMetadataServiceIsNotConnectedTo(t *testing.T) {
	resolveTo(t, [4]byte{169, 254, 169, 254})
	client, err := NewClient(mustPolicy(t, "http://*:*"), Credentials{Token: "hush"})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = get(t, client, "http://rebound.example./latest")
	const want = "rebound.example is at 169.254.169.254, a link-local address, which charts are not fetched from"
	if _, denied := errors.AsType[*Denied](err); !denied || Show(err) != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := map[string]int{"/fits": MaxAnswer, "/long": MaxAnswer + 1, "/longer": 10 << 20}[r.URL.Path]
		_, _ = io.WriteString(w, strings.Repeat("x", n))
	}))
	t.Cleanup(server.Close)
	client := Bounded(clientOf(t, Credentials{}))
	type result struct {
		Bytes int
		Err   error
	}
	got := map[string]result{}
	for _, path := range []string{"/empty", "/fits", "/long", "/longer"} {
		_, body, err := get(t, client, server.URL+path)
		got[path] = result{len(body), err}
	}
	want := map[string]result{
		"/empty": {}, "/fits": {Bytes: MaxAnswer}, "/long": {MaxAnswer, ErrTooLong}, "/longer": {MaxAnswer, ErrTooLong},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	closed := make(chan struct{})
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := clientOf(t, Credentials{})
	if _, _, err := get(t, client, server.URL); err != nil {
		t.Fatal(err)
	}
	client.CloseIdleConnections()
	<-closed
}

func TestErrorsThatMayBeSecretAreNotShown(t *testing.T) {
	for want, err := range map[string]error{
		"the request or the answer is no valid HTTP":         errors.New("invalid header hush"),
		"context canceled":                                   context.Canceled,
		"answers more than 1 MiB":                            ErrTooLong,
		"no whole answer in time: context deadline exceeded": context.DeadlineExceeded,
		"EOF":                                io.EOF,
		"looking up a.example: no such host": &net.DNSError{Name: "a.example", Err: "no such host", Server: "hush"},
	} {
		if got := Show(err); got != want {
			t.Errorf("%v is shown as %q, want %q", err, got, want)
		}
	}
}

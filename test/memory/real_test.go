// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"shipper.dev/shipper/test/fleet"
)

// step is a request that both API servers get, in the order of the table.
type step struct {
	name   string // a sentence
	method string
	path   string // /ns stands for /namespaces/<namespace of the test>
	body   string // $uid(x) and $rv(x) stand for those of the response that a step saved as x, $continue for the last token
	kind   string // of the body: merge, json, strategic, apply, yaml; default: JSON
	header string // "Name: value"
	save   string
	// gone waits until the path responds with 404, and compares nothing else: garbage is collected in its own time.
	gone bool
	// without waits until the response does not have this text any more, and compares then.
	without string
	// marked waits until the object of the path is marked for deletion.
	marked bool
	// watch starts a watch of this name; until that is given, its events are compared up to the one for this object.
	watch, until string
	// get is a request through a client of client-go, in place of method and path.
	get func(ctx context.Context, c *rest.Config, namespace string) (any, error)
}

// side is one of the two API servers.
type side struct {
	config    *rest.Config
	http      *http.Client
	namespace string
	saved     map[string]string
	next      string // continue token
	tokens    map[string]string
	counts    map[string]int
	watches   map[string]*bufio.Reader
	paging    bool // the request is for a page that is not the first
}

func newSide(t *testing.T, config *rest.Config) *side {
	t.Helper()
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = "differential/1", -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &side{
		config: config, http: client, namespace: "differential",
		saved: map[string]string{}, tokens: map[string]string{}, counts: map[string]int{}, watches: map[string]*bufio.Reader{},
	}
}

var kinds = map[string]string{
	"": "application/json", "merge": "application/merge-patch+json", "json": "application/json-patch+json",
	"strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml", "yaml": "application/yaml",
}

// fill puts saved values in place of their names.
func (s *side) fill(text string) string {
	text = strings.ReplaceAll(text, "/ns/", "/namespaces/"+s.namespace+"/")
	text = strings.ReplaceAll(text, "$continue", s.next)
	return regexp.MustCompile(`\$(uid|rv)\((\w+)\)`).ReplaceAllStringFunc(text, func(name string) string { return s.saved[name] })
}

// do sends a request, and returns the response in the form in which the two sides are compared.
func (s *side) do(t *testing.T, st step) any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s.paging = strings.Contains(st.path, "continue=")
	switch {
	case st.get != nil:
		got, err := st.get(ctx, s.config, s.namespace)
		if err != nil {
			return s.text(err.Error())
		}
		raw, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		return s.normal(raw)
	case st.watch != "" && st.until != "":
		return s.events(t, st)
	case st.watch != "":
		ctx = t.Context() // it stays open
	}
	for {
		response := s.send(ctx, t, st)
		if st.watch != "" && response.StatusCode == http.StatusOK {
			s.watches[st.watch] = bufio.NewReader(response.Body)
			t.Cleanup(func() { response.Body.Close() })
			return response.StatusCode
		}
		raw, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if left := st.without != "" && bytes.Contains(raw, []byte(s.fill(st.without))); st.gone || st.marked || left {
			if st.gone && response.StatusCode == http.StatusNotFound || st.marked && bytes.Contains(raw, []byte("deletionTimestamp")) {
				return "done"
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s is still there: %s", st.path, raw)
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		s.remember(st.save, raw)
		return map[string]any{"code": response.StatusCode, "body": s.normal(raw), "warnings": s.texts(response.Header.Values("Warning"))}
	}
}

func (s *side) send(ctx context.Context, t *testing.T, st step) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, st.method, s.config.Host+s.fill(st.path), strings.NewReader(s.fill(st.body)))
	if err != nil {
		t.Fatal(err)
	}
	if st.body != "" {
		request.Header.Set("Content-Type", kinds[st.kind])
	}
	request.Header.Set("Accept", "application/json")
	if name, value, ok := strings.Cut(st.header, ": "); ok {
		request.Header.Set(name, value)
	}
	response, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// remember saves what later steps name.
func (s *side) remember(as string, raw []byte) {
	var of struct {
		Metadata struct{ UID, ResourceVersion, Continue, Name string }
	}
	if json.Unmarshal(raw, &of) != nil {
		return
	}
	if of.Metadata.Continue != "" {
		s.next = of.Metadata.Continue
	}
	if as != "" {
		s.saved["$uid("+as+")"], s.saved["$rv("+as+")"] = of.Metadata.UID, of.Metadata.ResourceVersion
	}
}

// events reads the events of a watch up to the one for an object. Bookmarks are left out, except the one that ends the initial
// events: a real API server sends others when its clock says so.
func (s *side) events(t *testing.T, st step) any {
	t.Helper()
	var out []any
	for {
		line, err := s.watches[st.watch].ReadBytes('\n')
		if err != nil {
			t.Fatalf("watch %s: %v after %v", st.watch, err, out)
		}
		initial := bytes.Contains(line, []byte("k8s.io/initial-events-end"))
		if bytes.Contains(line, []byte("BOOKMARK")) && !initial {
			continue
		}
		out = append(out, s.normal(line))
		if bytes.Contains(line, []byte(`"name":"`+st.until+`"`)) || st.until == "bookmark" && initial {
			return out
		}
	}
}

// normal replaces what differs between any two API servers: identifiers and versions by the order of their appearance, and times.
func (s *side) normal(raw []byte) any {
	var of any
	if err := json.Unmarshal(raw, &of); err != nil {
		return string(raw)
	}
	s.register("", of)
	return s.walk("", of)
}

// register names identifiers and versions before they are replaced, also where other fields contain them.
func (s *side) register(field string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if version, ok := v["resourceVersion"].(string); ok && field == "metadata" {
			s.version(v, version)
		}
		if uid, ok := v["uid"].(string); ok {
			s.token("uid", v["name"], uid)
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			s.register(k, v[k])
		}
	case []any:
		for _, inner := range v {
			s.register("", inner)
		}
	}
}

// ofServer are fields of addresses that each API server draws.
var ofServer = []string{"clusterIP", "time", "creationTimestamp", "deletionTimestamp", "continue", "lastTransitionTime"}

func (s *side) walk(field string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if version, ok := v["resourceVersion"].(string); ok && field == "metadata" {
			v["resourceVersion"] = s.version(v, version)
		}
		if uid, ok := v["uid"].(string); ok {
			v["uid"] = s.token("uid", v["name"], uid)
		}
		out := map[string]any{}
		for k, inner := range v {
			out[s.text(k)] = s.walk(k, inner)
		}
		return out
	case []any:
		if field == "clusterIPs" {
			return "addresses"
		}
		for i := range v {
			v[i] = s.walk("", v[i])
		}
		if field == "managedFields" { // they are in the order of their times, which are the same within a second
			slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(managerOf(a), managerOf(b)) })
		}
		return v
	case string:
		if slices.Contains(ofServer, field) && v != "" && v != "None" {
			return field
		}
		return s.text(v)
	}
	return v
}

// managerOf says which manager of fields something is.
func managerOf(v any) string {
	entry, _ := v.(map[string]any)
	return fmt.Sprint(entry["operation"], entry["manager"], entry["subresource"])
}

// version names the version of an object, or of the pages of a list. Other lists, and bookmarks, have the latest
// of the cluster, where others write, too.
func (s *side) version(metadata map[string]any, v string) string {
	switch {
	case metadata["name"] != nil:
		return s.token("rv", metadata["name"], v)
	case s.paging || metadata["remainingItemCount"] != nil || metadata["continue"] != nil && metadata["continue"] != "":
		return s.token("rv", "a list", "list "+v)
	}
	return "rv"
}

// token names a value of an object by the order of its appearance.
func (s *side) token(kind string, of any, v string) string {
	if v == "" || v == "0" {
		return v
	}
	if s.tokens[v] == "" {
		key := fmt.Sprint(kind, " of ", s.text(fmt.Sprint(of)))
		s.counts[key]++
		s.tokens[v] = fmt.Sprintf("%s#%d", key, s.counts[key])
	}
	return s.tokens[v]
}

var (
	uuidText      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|uid#\d+`)
	generatedText = regexp.MustCompile(`\bgenerated-([a-z0-9]{5}\b|#)`)
	versionText   = regexp.MustCompile(`(ResourceVersion in object meta:|\\"resourceVersion\\":|in record) ?(\(\d+\)|\\"\d+\\"|\d+|rv)`)
	keyText       = regexp.MustCompile(`Key: [^,]*,`)
	timeText      = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
)

// others are names of Go types: objects have internal ones in kube-apiserver.
var others = strings.NewReplacer("(core.ConfigMap)", "(v1.ConfigMap)")

func (s *side) texts(of []string) (out []any) {
	for _, v := range of {
		out = append(out, s.text(v))
	}
	return out
}

func (s *side) text(v string) string {
	v = uuidText.ReplaceAllStringFunc(v, func(id string) string {
		if known := s.tokens[id]; known != "" {
			return known
		}
		return "uid"
	})
	v = versionText.ReplaceAllString(v, "$1 rv")
	v = keyText.ReplaceAllString(v, "Key: key,")
	v = timeText.ReplaceAllString(v, "time")
	v = others.Replace(v)
	return generatedText.ReplaceAllString(v, "generated-#")
}

// TestMemoryRespondsAsARealAPIServer sends the same requests to a real API server and to one in memory, and compares the responses.
func TestMemoryRespondsAsARealAPIServer(t *testing.T) {
	f, err := fleet.Start(t.Context(), fleet.Options{CRDs: []string{"../../manifests/crd"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	real, memory := newSide(t, f.Management.Config), newSide(t, startAll(t).Config())
	var failed int
	for _, st := range steps() {
		want, got := real.do(t, st), memory.do(t, st)
		t.Run(st.name, func(t *testing.T) {
			if diff := cmp.Diff(want, got); diff != "" {
				failed++
				t.Errorf("%s %s %s: -real +memory:\n%s", st.method, st.path, st.body, diff)
			}
		})
	}
	t.Logf("%d requests, %d differ", len(steps()), failed)
}

// startAll starts a server with all kinds that this package knows.
func startAll(t *testing.T) *Server {
	t.Helper()
	all, err := Management()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Application() {
		if !slices.ContainsFunc(all, func(of Kind) bool { return of.ID() == k.ID() }) {
			all = append(all, k)
		}
	}
	s, err := Start(Options{Kinds: all})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

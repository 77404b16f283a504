// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// nodesServer serves one Node, no ConfigMaps, and what is sent to it as events of that Node. While refusing it forbids Nodes.
type nodesServer struct {
	refusing atomic.Bool
	events   chan *corev1.Node
}

// of are the events of a watch: there are none of ConfigMaps.
func (n *nodesServer) of(nodes bool) <-chan *corev1.Node {
	if nodes {
		return n.events
	}
	return nil
}

func (n *nodesServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	nodes := strings.HasSuffix(r.URL.Path, "/nodes")
	send := func(v any) {
		_ = json.NewEncoder(w).Encode(v)
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
	}
	switch {
	case nodes && n.refusing.Load():
		w.WriteHeader(http.StatusForbidden)
		send(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 403, Reason: "Forbidden"})
	case r.URL.Query().Get("sendInitialEvents") != "": // as an API server without streaming lists
		w.WriteHeader(http.StatusUnprocessableEntity)
		send(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 422, Reason: "Invalid"})
	case r.URL.Query().Has("watch"):
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		for {
			select {
			case <-r.Context().Done():
				return
			case node := <-n.of(nodes):
				send(map[string]any{"type": "MODIFIED", "object": node})
			}
		}
	case nodes:
		list := &corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		list.Items = []corev1.Node{*node("a", resources("cpu", "4"), nil)}
		send(list)
	default:
		send(&corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		})
	}
}

// observing runs an observer of a server, and returns what it reports.
func observing(t *testing.T, n *nodesServer) (<-chan Properties, *testingclock.FakeClock) {
	t.Helper()
	n.events = make(chan *corev1.Node)
	server := httptest.NewServer(n)
	o, err := newObserver(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	reports, ended := make(chan Properties, 10), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		o.run(ctx, clock, func(p Properties) { reports <- p })
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		server.CloseClientConnections()
		server.Close()
	})
	return reports, clock
}

func TestAMissingRightIsReportedUntilItIsGranted(t *testing.T) {
	n := &nodesServer{}
	n.refusing.Store(true)
	reports, clock := observing(t, n)
	want := Properties{Declared: &Declared{}, Missing: []string{"list and watch nodes"}}
	if diff := cmp.Diff(want, <-reports); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	n.refusing.Store(false)
	eventually(t, "the observer waits for its interval", clock.HasWaiters)
	clock.Step(propertiesInterval)
	want = Properties{Nodes: &NodeTotals{Count: 1, Capacity: resources("cpu", "4")}, Declared: &Declared{}}
	if diff := cmp.Diff(want, <-reports); diff != "" {
		t.Errorf("after the right is granted: -want +got:\n%s", diff)
	}
}

func TestChangedFiguresAreReportedAfterTheInterval(t *testing.T) {
	n := &nodesServer{}
	reports, clock := observing(t, n)
	<-reports
	eventually(t, "the observer waits for its interval", clock.HasWaiters)
	send := func(version, cpu string) {
		one := node("a", resources("cpu", cpu), nil)
		one.TypeMeta, one.ResourceVersion = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, version
		n.events <- one
	}
	send("2", "6")
	send("3", "8")
	clock.Step(propertiesInterval - time.Millisecond)
	if len(reports) != 0 || !clock.HasWaiters() {
		t.Errorf("a report may come before %s", propertiesInterval)
	}
	clock.Step(time.Millisecond)
	for p := range reports {
		if got := p.Nodes.Capacity.Cpu().String(); got == "8" {
			break
		} else if got != "6" {
			t.Fatalf("cpu is %s", got)
		}
		eventually(t, "the observer waits for its interval", clock.HasWaiters)
		clock.Step(propertiesInterval)
	}
}

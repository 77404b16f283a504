// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/memory"
)

const (
	// management is the host of the management cluster, apiServer its name as a client of webhooks.
	management, apiServer = "management", "api-server"
	chartsHost            = "charts"
	chartsURL             = "http://" + chartsHost
	checksHost            = "checks"
	checksURL             = "http://" + checksHost
	// namespace is that of all stories.
	namespace = "shop"
	// workers of the reconciler: few, so that the order of writes differs less from run to run.
	workers = 4
	// latency is that of each request to an API server, podLatency the time until Pods are ready, podEnd until deleted ones are gone, and
	// jobLatency until Jobs have succeeded.
	latency, podLatency, podEnd, jobLatency = 5 * time.Millisecond, 2 * time.Second, time.Second, 3 * time.Second
)

// World is everything that a story needs: API servers in memory, Shipper's processes and the network between them. It lives in a bubble of
// testing/synctest, and everything in it is made there.
type World struct {
	T       testing.TB
	Network *Network
	// Management is the management cluster, Clusters the application clusters by the names of their Cluster objects.
	Management *memory.Server
	Clusters   map[string]*memory.Server

	plan     Plan
	history  *History
	laws     *laws
	hosts    map[string]*host
	replicas replicas
	running  []*supervisor
	stop     context.CancelFunc

	// earlier is set while an earlier version of Shipper creates Releases.
	earlier atomic.Bool

	mu      sync.Mutex
	changed chan struct{} // closed with the next change of the management cluster
	exits   []error       // of processes that ended by themselves
}

// clusterName is the name of the n-th application cluster, counting from 0. It is also its host; its region is region(n).
func clusterName(n int) string { return fmt.Sprintf("cluster-%d", n) }

func region(n int) string { return fmt.Sprintf("region-%d", n) }

// newWorld makes the servers. Nothing runs yet.
func newWorld(t testing.TB, p Plan) *World {
	h := newHistory()
	w := &World{
		T: t, Network: newNetwork(p.Seed, h), Clusters: map[string]*memory.Server{}, plan: p, history: h,
		hosts: map[string]*host{}, changed: make(chan struct{}),
	}
	w.laws = newLaws(w)
	w.Network.delivered, w.Network.answered = w.laws.delivered, w.laws.answered
	w.Network.serve(chartsHost, http.HandlerFunc(serveCharts))
	w.Network.serve(checksHost, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	kinds, err := memory.Management()
	w.must("reading the kinds", err)
	for i := range kinds {
		kinds[i].Unmanaged = kinds[i].Resource != "applications" // runs apply Applications; no program reads field owners of other kinds
	}
	w.Management = w.newServer(management, memory.Options{
		Kinds: kinds, Mutate: w.mutate, Review: w.validate, Reviewed: reviewed, User: identify,
	})
	return w
}

// newServer makes an API server.
func (w *World) newServer(name string, o memory.Options) *memory.Server {
	h := &host{
		name: name, objects: map[string]map[string]*unstructured.Unstructured{}, created: map[string][]string{}, changed: w.commit,
	}
	w.hosts[name] = h
	o.Latency, o.PodLatency, o.PodEnd, o.JobLatency, o.Enter, o.Noted = latency, podLatency, podEnd, jobLatency, h.enter, h.noted
	s := memory.New("http://"+name, o)
	w.Network.serve(name, s)
	return s
}

// commit is called with each change, by the server's mutex.
func (w *World) commit(c change) {
	w.laws.judge(c)
	if c.host == management {
		w.mu.Lock()
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
	}
}

// identify is memory.Options.User.
func identify(r *http.Request) user.Info {
	name := "system:serviceaccount:" + shipper.SystemNamespace + ":" + shipper.ManagementServiceAccount
	switch s := sentBy(r.Context()); {
	case s == nil || s.process() == userName:
		name = "ann@example.com"
	case s.process() == approverName:
		name = "bob@example.com"
	}
	return &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}
}

// addCluster makes the n-th application cluster, without its Cluster object.
func (w *World) addCluster(n int) {
	w.T.Helper()
	name := clusterName(n)
	s := w.newServer(name, memory.Options{Kinds: memory.Application()})
	w.Clusters[name] = s
	for _, ns := range []string{namespace, shipper.SystemNamespace} {
		w.must("creating a namespace", s.Create("", "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	w.must("creating credentials", w.Management.Create("", "secrets", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: name},
		Data:       map[string][]byte{"token": []byte("token-" + name)},
	}))
}

// clusterObject is the Cluster of the n-th application cluster.
func clusterObject(n int) *shipper.Cluster {
	c := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName(n)}}
	c.Spec.Region, c.Spec.APIMaster = region(n), "https://"+clusterName(n)
	return c
}

// begin makes the clusters, and starts Shipper.
func (w *World) begin(clusters int) {
	w.T.Helper()
	for _, ns := range []string{shipper.SystemNamespace, shipper.GlobalBlocksNamespace, namespace} {
		w.must("creating a namespace", w.Management.Create("", "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: ns, Labels: map[string]string{corev1.LabelMetadataName: ns},
		}}))
	}
	for n := range clusters {
		w.addCluster(n)
		w.must("creating a Cluster", w.Management.Create(shipper.GroupVersion.Group, "clusters", clusterObject(n)))
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	for n := range w.plan.Webhooks {
		w.running = append(w.running, w.supervise(ctx, fmt.Sprint(webhooks, n), w.admit))
	}
	w.awaitWebhooks(w.plan.Webhooks)
	for n := range max(1, w.plan.Replicas) {
		w.running = append(w.running, w.supervise(ctx, fmt.Sprint(reconcilers, n), w.reconcile))
	}
}

// end stops everything. Nothing of the world runs afterwards.
func (w *World) end() {
	if w.stop != nil {
		w.stop()
	}
	for _, s := range w.running {
		<-s.done
	}
	w.Management.Shut()
	for _, s := range w.Clusters {
		s.Shut()
	}
}

// kill ends the lives of processes whose names begin so.
func (w *World) kill(process string) {
	for _, s := range w.running {
		if strings.HasPrefix(s.name, process) {
			s.kill()
		}
	}
}

// fail begins faults.
func (w *World) fail(faults ...Fault) {
	w.Network.Add(faults...)
	for _, f := range faults {
		w.history.Note("fault", "%s", f)
		if f.Kind == Kill {
			time.AfterFunc(f.After, func() { w.kill(f.Process) })
		}
	}
}

func (w *World) endedByItself(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exits = append(w.exits, err)
}

// must ends the run on an error.
func (w *World) must(doing string, err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatalf("%s: %v\n%s", doing, err, w.history)
	}
}

// password is a template that renders to something else each time.
const password = `apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: {{ randAlphaNum 12 | quote }}}
`

// packed are the files of a repository with all charts, by path. They are shared by all runs.
var packed = sync.OnceValue(func() map[string][]byte {
	all, err := charts.All()
	if err != nil {
		panic(err) // they are embedded
	}
	files := charts.Hooked(charts.InstallHooks)
	files["templates/password.yaml"] = password
	hooked, err := charts.PackFiles("hooked", "0.0.1", files)
	if err != nil {
		panic(err)
	}
	for _, version := range []string{"0.0.1", "0.0.2"} {
		shop, err := charts.PackFiles("shop", version, charts.Shop(version))
		if err != nil {
			panic(err)
		}
		all = append(all, shop)
		stateful, err := charts.PackFiles("stateful", version, statefulChart(version))
		if err != nil {
			panic(err)
		}
		all = append(all, stateful)
	}
	leaving := charts.Hooked(charts.DeleteHooks)
	leaving["Chart.yaml"] = "apiVersion: v2\nname: leaving\nversion: 0.0.1\n"
	withHooks, err := charts.PackFiles("leaving", "0.0.1", leaving)
	if err != nil {
		panic(err)
	}
	all = append(all, hooked, withHooks)
	versions, out := map[string][]string{}, map[string][]byte{}
	for _, a := range all {
		file := a.Name + "-" + a.Version + ".tgz"
		versions[a.Name] = append(versions[a.Name], fmt.Sprintf(
			"  - {name: %s, version: %s, digest: %s, urls: [%s]}\n", a.Name, a.Version, a.Digest, file))
		out["/"+file] = a.Bytes
	}
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n")
	for name, lines := range versions {
		fmt.Fprintf(&index, "  %s:\n%s", name, strings.Join(lines, ""))
	}
	out["/index.yaml"] = []byte(index.String())
	return out
})

func serveCharts(w http.ResponseWriter, r *http.Request) {
	raw, found := packed()[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(raw)
}

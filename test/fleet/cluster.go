// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"shipper.dev/shipper/test/await"
	"shipper.dev/shipper/test/program"
)

// Cluster is one cluster of a fleet: a real API server with its controllers, whose nodes are simulated.
type Cluster struct {
	// Name is unique in the fleet. It is also the name of the cluster's context in Fleet.Kubeconfig.
	Name string
	// Kubeconfig is a file with the credentials of the cluster's administrator.
	Kubeconfig string
	// Config has the same credentials for Go programs, without a limit to the rate of requests.
	Config *rest.Config
	// AuditLog is a file with one audit Event per line for every request of Shipper's accounts and about Shipper's own kinds,
	// and for the administrator's writes to Pods, Services and Deployments, written before the response.
	AuditLog string

	index       int
	podless     bool
	fleet       *Fleet
	programs    string // folder
	store       *store // nil when this process did not start the cluster
	port        *program.Port
	credentials *credentials

	mu        sync.Mutex
	apiServer *program.Process   // nil while stopped
	manager   *program.Process   // the controller manager
	others    []*program.Process // scheduler and simulated kubelets
}

// unlimited, as a client's QPS, disables its rate limit.
const unlimited = -1

// newCluster reserves ports and files before any program of the cluster starts.
func newCluster(f *Fleet, index int, name, programs string, in *store) (*Cluster, error) {
	c := &Cluster{Name: name, index: index, fleet: f, programs: programs, store: in}
	c.Kubeconfig = filepath.Join(f.Dir, name+".kubeconfig")
	c.AuditLog = filepath.Join(f.Dir, "logs", name+"-audit.log")
	folder, err := f.folder("credentials", name)
	if err != nil {
		return nil, err
	}
	if c.credentials, err = newCredentials(name, folder); err != nil {
		return nil, err
	}
	if c.port, err = program.ReservePort(); err != nil {
		return nil, err
	}
	c.Config = &rest.Config{
		Host: "https://" + c.port.Address(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: c.credentials.trusted(), CertData: c.credentials.adminCert, KeyData: c.credentials.adminKey,
		},
		QPS: unlimited,
	}
	for program, pair := range c.credentials.programs {
		config := rest.AnonymousClientConfig(c.Config)
		config.CertData, config.KeyData = pair.cert, pair.key
		if err := writeKubeconfig(kubeconfig(name, program, config), c.kubeconfigOf(program)); err != nil {
			return nil, err
		}
	}
	return c, writeKubeconfig(kubeconfig(name, name+"-admin", c.Config), c.Kubeconfig)
}

// kubeconfigOf returns the kubeconfig of a program of the cluster.
func (c *Cluster) kubeconfigOf(program string) string {
	return filepath.Join(filepath.Dir(c.credentials.ca), program+".kubeconfig")
}

// start starts the cluster's programs and returns when the cluster is usable. It installs crds, which are files and folders,
// before any controller discovers kinds.
func (c *Cluster) start(ctx context.Context, crds []string) error {
	began := time.Now()
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	c.fleet.say("%s: API server ready after %s", c.Name, since(began))
	if err := c.installCRDs(crds); err != nil {
		return err
	}
	if err := c.startControllers(); err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", c.Name, err)
	}
	if !c.podless {
		if err := c.createNodes(ctx, typed); err != nil {
			return err
		}
	}
	if err := c.awaitUse(ctx); err != nil {
		return err
	}
	c.fleet.say("%s: ready after %s", c.Name, since(began))
	return nil
}

// awaitUse waits until Pods can be created and will run.
func (c *Cluster) awaitUse(ctx context.Context) error {
	typed, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", c.Name, err)
	}
	return c.wait(ctx, "its nodes and service accounts", func(ctx context.Context) (bool, error) {
		return usable(ctx, typed)
	})
}

// installCRDs installs the CustomResourceDefinitions of files and folders.
func (c *Cluster) installCRDs(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	options := envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(c.Config, options); err != nil {
		return fmt.Errorf("%s: installing CustomResourceDefinitions: %w", c.Name, err)
	}
	return nil
}

// startControllers starts everything but the API server.
func (c *Cluster) startControllers() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.manager, err = c.run("kube-controller-manager", c.controllerManagerArgs()); err != nil {
		return err
	}
	if c.podless {
		return nil
	}
	for name, args := range map[string][]string{
		"kube-scheduler": c.schedulerArgs(),
		"kwok":           c.kwokArgs(c.fleet.stages),
	} {
		p, err := c.run(name, args)
		if err != nil {
			return err
		}
		c.others = append(c.others, p)
		if name == "kwok" {
			c.replace(p, args, maxReplaced)
		}
	}
	return nil
}

// maxReplaced is how often the simulated kubelets of a cluster are started again.
const maxReplaced = 3

// replace starts the simulated kubelets again when they exit on their own, as a node does. In its first moments kwok fills maps that two of
// its goroutines share, and now and then it dies of that.
func (c *Cluster) replace(p *program.Process, args []string, times int) {
	if times == 0 {
		return
	}
	p.SetReplaced(true)
	go func() {
		<-p.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		at := slices.Index(c.others, p)
		if at < 0 || p.Expected() {
			return
		}
		next, err := c.run("kwok", args)
		if err != nil {
			p.SetReplaced(false)
			return
		}
		c.others[at] = next
		c.replace(next, args, times-1)
	}()
}

// run starts a program of the cluster.
func (c *Cluster) run(name string, args []string) (*program.Process, error) {
	return c.fleet.run(c.Name+"-"+name, filepath.Join(c.programs, name), args)
}

// usable reports whether Pods can be created and will run: the nodes are Ready and the default service account exists.
func usable(ctx context.Context, typed kubernetes.Interface) (bool, error) {
	_, err := typed.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	nodes, err := typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for _, node := range nodes.Items {
		if node.Status.Phase != corev1.NodeRunning {
			return false, nil
		}
	}
	return true, nil
}

// createNodes registers the cluster's nodes. The simulated kubelets make them Ready.
func (c *Cluster) createNodes(ctx context.Context, typed kubernetes.Interface) error {
	for i := range 2 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", c.Name, i+1)}}
		node.Labels = map[string]string{corev1.LabelHostname: node.Name, corev1.LabelOSStable: "linux"}
		_, err := typed.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating a node of %s: %w", c.Name, err)
		}
	}
	return nil
}

// errNotYet is what a wait lacks when no request failed.
var errNotYet = errors.New("not yet")

// wait polls until ask returns true, a program of the cluster exits, or ctx ends.
func (c *Cluster) wait(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	report := await.Progress(c.fleet.say, c.Name+": "+what)
	for {
		yes, err := ask(ctx)
		if yes {
			return nil
		}
		report(cmp.Or(err, errNotYet))
		if err := c.failure(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			err = fmt.Errorf("%s: waiting for %s: %w", c.Name, what, errors.Join(context.Cause(ctx), err))
			return c.explain(err)
		case <-ticker.C:
		}
	}
}

// failure returns the error of a program of the cluster, or of its etcd, that exited on its own.
func (c *Cluster) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := []error{c.store.etcd.Failure()}
	for _, p := range c.running() {
		errs = append(errs, p.Failure())
	}
	return errors.Join(errs...)
}

// explain adds the last output of the cluster's programs to an error.
func (c *Cluster) explain(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.running() {
		err = p.Explain(err)
	}
	return err
}

// running lists the programs of the cluster that were started, dependent ones first.
func (c *Cluster) running() []*program.Process {
	out := append([]*program.Process(nil), c.others...)
	for _, p := range []*program.Process{c.manager, c.apiServer} {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// RestartControllers restarts the controller manager. The garbage collector and the namespace controller discover new kinds
// every 30 seconds only; a test that cannot wait so long after it installed kinds calls it.
func (c *Cluster) RestartControllers() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.manager == nil {
		return fmt.Errorf("%s: %w", c.Name, errNotOurs)
	}
	if err := c.manager.Kill(); err != nil {
		return err
	}
	var err error
	c.manager, err = c.run("kube-controller-manager", c.controllerManagerArgs())
	return err
}

// Client returns the administrator's client for the kinds of a scheme; nil stands for the built-in kinds.
func (c *Cluster) Client(scheme *runtime.Scheme) (client.Client, error) {
	config := rest.CopyConfig(c.Config)
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandler = rest.NoWarnings{} // a test about warnings has a handler in Config
	}
	out, err := client.New(config, client.Options{Scheme: scheme, Log: logr.Discard()})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", c.Name, err)
	}
	return out, nil
}

// ServiceAccountKubeconfig writes a kubeconfig with a token of a service account, so that a program outside the cluster has
// the rights of a Pod. The token is valid for a day.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	typed, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", fmt.Errorf("making a client for %s: %w", c.Name, err)
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 60 * 60)},
	}
	answer, err := typed.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking %s for a token of service account %s/%s: %w", c.Name, namespace, name, err)
	}
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = answer.Status.Token
	path := filepath.Join(c.fleet.Dir, fmt.Sprintf("%s-%s-%s.kubeconfig", c.Name, namespace, name))
	return path, writeKubeconfig(kubeconfig(c.Name, name, config), path)
}

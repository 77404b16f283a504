// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
)

// Cluster is one cluster of a fleet: a real API server with its controllers, whose nodes are simulated.
type Cluster struct {
	// Name is unique in the fleet. It is also the name of the cluster's context in Fleet.Kubeconfig.
	Name string
	// Kubeconfig is a file that makes its reader the cluster's administrator.
	Kubeconfig string
	// Config is the same for Go programs, without a limit to the rate of requests.
	Config *rest.Config
	// AuditLog is a file with one audit Event per line for every request of Shipper's accounts and about Shipper's own
	// kinds, and for what the administrator writes to Pods, Services and Deployments, written before the request is answered.
	AuditLog string

	index       int
	podless     bool
	fleet       *Fleet
	programs    string // folder
	store       *store // nil when this process did not start the cluster
	port        *reservation
	credentials *credentials

	mu        sync.Mutex
	apiServer *process   // nil while stopped
	manager   *process   // the controller manager
	others    []*process // scheduler and simulated kubelets
}

// unlimited, as a client's QPS, lets it send as many requests as it likes.
const unlimited = -1

// newCluster reserves what a cluster needs before any of its programs can start.
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
	if c.port, err = reservePort(); err != nil {
		return nil, err
	}
	c.Config = &rest.Config{
		Host: "https://" + address(c.port.port),
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

// kubeconfigOf is the file that makes a program of the cluster what it is anywhere.
func (c *Cluster) kubeconfigOf(program string) string {
	return filepath.Join(filepath.Dir(c.credentials.ca), program+".kubeconfig")
}

// start starts the cluster's programs and returns when the cluster can be used. It has the kinds of crds, which are files
// and folders, before any controller looks for kinds.
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

// awaitUse waits until Pods can be made and will run.
func (c *Cluster) awaitUse(ctx context.Context) error {
	typed, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", c.Name, err)
	}
	return c.wait(ctx, "its nodes and service accounts", func(ctx context.Context) (bool, error) {
		return usable(ctx, typed)
	})
}

// installCRDs makes the API server serve the kinds of some files and folders.
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
	for program, args := range map[string][]string{
		"kube-scheduler": c.schedulerArgs(),
		"kwok":           c.kwokArgs(c.fleet.stages),
	} {
		p, err := c.run(program, args)
		if err != nil {
			return err
		}
		c.others = append(c.others, p)
	}
	return nil
}

// run starts a program of the cluster.
func (c *Cluster) run(program string, args []string) (*process, error) {
	return c.fleet.run(c.Name+"-"+program, filepath.Join(c.programs, program), args)
}

// usable reports whether Pods can be made and will run: the nodes are up and the default service account is there.
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

// createNodes registers the cluster's nodes. They come up when the simulated kubelets see them.
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

// wait asks again and again until the answer is yes, a program of the cluster ends, or ctx does.
func (c *Cluster) wait(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		yes, err := ask(ctx)
		if yes {
			return nil
		}
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

// failure is the error of a program that ended on its own, of the cluster's or etcd.
func (c *Cluster) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := []error{c.store.etcd.failure()}
	for _, p := range c.running() {
		errs = append(errs, p.failure())
	}
	return errors.Join(errs...)
}

// explain adds to an error what the programs of the cluster said last.
func (c *Cluster) explain(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.running() {
		err = p.explain(err)
	}
	return err
}

// running lists the programs of the cluster that have been started, those first that depend on the others.
func (c *Cluster) running() []*process {
	out := append([]*process(nil), c.others...)
	for _, p := range []*process{c.manager, c.apiServer} {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// RestartControllers starts the controller manager again. The garbage collector and the namespace controller look for new
// kinds every 30 seconds only; a test that has installed kinds and cannot wait so long calls it.
func (c *Cluster) RestartControllers() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.manager == nil {
		return fmt.Errorf("%s: %w", c.Name, errNotOurs)
	}
	if err := c.manager.kill(); err != nil {
		return err
	}
	var err error
	c.manager, err = c.run("kube-controller-manager", c.controllerManagerArgs())
	return err
}

// Client is a client of the cluster's administrator for the kinds of a scheme; nil stands for the built-in kinds.
func (c *Cluster) Client(scheme *runtime.Scheme) (client.Client, error) {
	config := rest.CopyConfig(c.Config)
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandler = rest.NoWarnings{} // a test that is about warnings has a handler in Config
	}
	out, err := client.New(config, client.Options{Scheme: scheme, Log: logr.Discard()})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", c.Name, err)
	}
	return out, nil
}

// ServiceAccountKubeconfig writes a kubeconfig with a token of a service account, so that a program outside the
// cluster is what it would be in a Pod. The token is good for a day.
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

// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/credential"
)

// answerTimeout is how long an application cluster may take for one answer.
const answerTimeout = 10 * time.Second

// clusterState is the state of an application cluster.
type clusterState struct {
	cluster *shipper.Cluster
	// failure is why nothing can be asked of it with its credentials.
	failure *fleet.Error
	version string
	missing []right
	// credential is read from the credentials, at the time now.
	credential credential.Credential
	now        time.Time
}

// Cluster reports whether an application cluster can be used with the credentials that the management cluster has for it. The
// version is empty when the cluster did not say.
func Cluster(
	ctx context.Context, from client.Reader, namespace string, cluster *shipper.Cluster, now time.Time,
) (findings []Finding, version string) {
	key := client.ObjectKey{Namespace: namespace, Name: cluster.Name}
	secret := &corev1.Secret{}
	err := from.Get(ctx, key, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return []Finding{unreadable("its Secret "+key.String(), err)}, ""
	}
	if err != nil {
		secret = nil
	}
	s := clusterState{cluster: cluster, now: now}
	if secret != nil {
		s.credential = credential.Read(secret)
	}
	access, err := fleet.NewAccess(cluster, secret, key.String())
	if err == nil {
		err = s.connect(ctx, access)
	}
	if err != nil && !errors.As(err, &s.failure) {
		s.failure = fleet.ConnectError(cluster.Name, cluster.Spec.APIMaster, err)
		if apierrors.IsUnauthorized(err) {
			s.failure.Message = fleet.Refused(cluster.Spec.APIMaster, s.credential, now)
		}
	}
	return s.findings(), s.version
}

// connect uses Shipper's credentials.
func (s *clusterState) connect(ctx context.Context, access *fleet.Access) error {
	config := access.Config
	config.UserAgent, config.Timeout = "shipperctl", answerTimeout
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c, err := cli.NewClient(config, authorizationv1.AddToScheme)
	if err != nil {
		return err
	}
	found, err := d.ServerVersionWithContext(ctx)
	if err != nil {
		return err
	}
	s.version = found.GitVersion
	rights, err := rightsOf(applicationRole, "")
	if err != nil {
		return err
	}
	if account := s.credential.Account; s.credential.Renewed() {
		rights = append(rights, right{account.Namespace, "", "serviceaccounts/token", account.Name, "create"})
	}
	s.missing, err = missing(ctx, rights, allowed(c, nil))
	return err
}

// findings is pure.
func (s *clusterState) findings() []Finding {
	var out []Finding
	leaving := shipper.FindCondition(s.cluster.Status.Conditions, shipper.ClusterLeaving)
	switch {
	case s.cluster.DeletionTimestamp.IsZero():
	case leaving != nil && controllerutil.ContainsFinalizer(s.cluster, shipper.ClusterFinalizer):
		out = append(out, warning("it leaves, and "+leaving.Message,
			"the Cluster goes when Shipper has removed what it placed there", "shipperctl clusters drain "+s.cluster.Name))
	default:
		out = append(out, warning("it is being deleted",
			"Shipper does not speak to it any more", "look at its finalizers: kubectl get cluster "+s.cluster.Name+" -o yaml"))
	}
	if s.failure != nil {
		return append(out, s.unusable())
	}
	out = append(out, tooOld(s.version, leastApplication)...)
	ofNodes := func(r right) bool { return r.group == "" && r.resource == "nodes" }
	if others := slices.DeleteFunc(slices.Clone(s.missing), ofNodes); len(others) > 0 {
		out = append(out, broken("Shipper's account may not:\n"+list(others),
			"charts with such objects are not installed, or not rolled out",
			"join it again, which brings the roles up to date: shipperctl clusters join"))
	}
	out = append(out, s.condition(len(out) > 0)...)
	if nodes := slices.DeleteFunc(slices.Clone(s.missing), func(r right) bool { return !ofNodes(r) }); len(nodes) > 0 {
		out = append(out, warning("Shipper's account may not:\n"+list(nodes),
			"placements cannot compare this cluster by its Nodes and their resources",
			"join it again, which brings the roles up to date: shipperctl clusters join"))
	}
	return append(out, endOf(s.credential, s.now)...)
}

// endOf reports credentials that expire soon.
func endOf(c credential.Credential, now time.Time) []Finding {
	f := warning(fmt.Sprintf("its %s ends at %s", c.Kind, c.NotAfter.Format(time.RFC3339)),
		"Shipper cannot work with it then: no change reaches it", c.Remedy())
	switch {
	case c.Problem != "":
		f.What, f.Why = "its token cannot be renewed: "+c.Problem, "it was meant to be"
	case !c.Ends() || now.Before(c.WarnAt()):
		return nil
	case c.Renewed():
		f.What += fmt.Sprintf(" and was to be renewed at %s", c.RenewAt().Format(time.RFC3339))
		f.Do = "shipperctl doctor checks whether the reconciler runs; if it does, condition CredentialsValid of the Cluster has the reason. " +
			c.Remedy()
	default:
		f.What += ", and Shipper does not renew it"
	}
	return []Finding{f}
}

// unusable is the finding about a cluster that did not answer.
func (s *clusterState) unusable() Finding {
	f := broken(s.failure.Message,
		"Shipper cannot work with it: Pods there keep running, and no change reaches it",
		"join it again: shipperctl clusters join")
	if s.credential.Kind == credential.Certificate {
		f.Do = s.credential.Remedy()
	}
	ready := shipper.FindCondition(s.cluster.Status.Conditions, shipper.ClusterReady)
	switch {
	case s.failure.Reason == shipper.TargetClusterClientError:
		f.Do = fmt.Sprintf(`kubectl patch cluster %s --type=merge -p '{"spec":{"apiMaster":"https://…"}}'`, s.cluster.Name)
	case s.failure.Reason != shipper.ClusterUnreachable:
	case ready != nil && ready.Status == corev1.ConditionTrue && s.cluster.Status.ObservedGeneration == s.cluster.Generation:
		f.Level = levelWarning
		f.Why = "it could not be asked from here. Shipper reaches it, says its Ready condition"
		f.Do = "nothing, if this machine is not to reach it; otherwise look at the network between"
	default:
		f.Do = "look whether its API server is up, whether spec.apiMaster is its address as Shipper reaches it, and at the network between"
	}
	return f
}

// condition reports the Ready condition of a cluster that answers here, unless unwell: faults are not reported twice.
func (s *clusterState) condition(unwell bool) []Finding {
	ready := shipper.FindCondition(s.cluster.Status.Conditions, shipper.ClusterReady)
	switch {
	case ready == nil || ready.Status == corev1.ConditionUnknown || s.cluster.Status.ObservedGeneration != s.cluster.Generation:
		return []Finding{warning("Shipper has not looked at it since it was changed last",
			"the reconciler does not run, or has not come to it yet", "shipperctl doctor checks whether the reconciler runs")}
	case ready.Status == corev1.ConditionTrue || unwell:
		return nil
	}
	return []Finding{broken(fmt.Sprintf("it answers here, but Shipper says %s: %s", ready.Reason, ready.Message),
		"Shipper cannot work with it: Pods there keep running, and no change reaches it",
		"look at the network between Shipper and "+s.cluster.Spec.APIMaster)}
}

// checkEach checks clusters in parallel: one that does not answer must not delay the others.
func checkEach(clusters []shipper.Cluster, look func(*shipper.Cluster) Check) []Check {
	out := make([]Check, len(clusters))
	var all sync.WaitGroup
	for i := range clusters {
		all.Go(func() { out[i] = look(&clusters[i]) })
	}
	all.Wait()
	return out
}

// The oldest versions of Kubernetes that Shipper works with.
const (
	leastManagement  = "1.30"
	leastApplication = "1.27"
)

// tooOld reports whether an API server is older than Shipper needs.
func tooOld(found, least string) []Finding {
	is, err := version.ParseGeneric(found)
	if err != nil {
		return []Finding{warning(fmt.Sprintf("its API server says to be %q, which is no version", found),
			"it may be older than "+least, "look at kubectl version")}
	}
	if is.AtLeast(version.MustParseGeneric(least)) {
		return nil
	}
	return []Finding{broken(fmt.Sprintf("its API server is %s, older than %s", found, least),
		"Shipper needs Kubernetes "+leastManagement+" or later in the management cluster and "+leastApplication+
			" or later in application clusters: what it relies on is not served before",
		"upgrade the cluster to Kubernetes "+least+" or later")}
}

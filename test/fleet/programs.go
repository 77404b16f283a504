// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiversion "k8s.io/apimachinery/pkg/util/version"

	"shipper.dev/shipper/test/program"
)

// controllers lists the controllers that Shipper and the charts it installs need. The node controllers are missing: simulated
// nodes do not fail.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"daemonset-controller",
	"deployment-controller",
	"endpoints-controller", // clients written for the original read Endpoints
	"endpointslice-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"validatingadmissionpolicy-status-controller",
}

// formerly has the names of the controllers before Kubernetes 1.28, which did not have all of them.
var formerly = map[string]string{
	"clusterrole-aggregation-controller":       "clusterrole-aggregation",
	"cronjob-controller":                       "cronjob",
	"daemonset-controller":                     "daemonset",
	"deployment-controller":                    "deployment",
	"endpoints-controller":                     "endpoint",
	"endpointslice-controller":                 "endpointslice",
	"garbage-collector-controller":             "garbagecollector",
	"job-controller":                           "job",
	"namespace-controller":                     "namespace",
	"replicaset-controller":                    "replicaset",
	"resourcequota-controller":                 "resourcequota",
	"root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
	"serviceaccount-controller":                "serviceaccount",
	"serviceaccount-token-controller":          "serviceaccount-token",
	"statefulset-controller":                   "statefulset",
}

// controllersOf returns the names of the controllers for the version of Kubernetes that names the folder.
func controllersOf(programs string) []string {
	is, err := apiversion.ParseSemantic(filepath.Base(programs))
	if err != nil || is.AtLeast(apiversion.MustParseSemantic("v1.28.0")) { // a user's own folder may have any name
		return controllers
	}
	var out []string
	for _, name := range controllers {
		if former := formerly[name]; former != "" {
			out = append(out, former)
		}
	}
	return out
}

// environment is the environment of the fleet's programs. It has none of the caller's variables, above all no proxy between
// an API server and a webhook on this machine. GOGC=300 saves the API server a tenth of its CPU time.
func environment(home string) []string {
	return []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "GOGC=300"}
}

// etcdArgs makes etcd listen on one port, keep its data in a folder and never wait for the disk. By default its only member
// waits up to half a second before it elects itself.
func etcdArgs(port *program.Port, data string) []string {
	url := "http://" + port.Address()
	return []string{
		"--name=fleet",
		"--data-dir=" + data,
		"--listen-client-urls=" + url,
		"--advertise-client-urls=" + url,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync",
		"--heartbeat-interval=20",
		"--election-timeout=100",
		"--log-level=warn",
		"--quota-backend-bytes=1073741824",
	}
}

// apiServerArgs are the arguments of a cluster's API server.
func (c *Cluster) apiServerArgs(etcd *program.Port) []string {
	return []string{
		"--etcd-servers=http://" + etcd.Address(),
		"--etcd-prefix=/" + c.Name,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port.Number),
		"--tls-cert-file=" + c.credentials.serverCert,
		"--tls-private-key-file=" + c.credentials.serverKey,
		"--client-ca-file=" + c.credentials.ca,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.credentials.accountKey,
		"--service-account-signing-key-file=" + c.credentials.accountKey,
		fmt.Sprintf("--service-cluster-ip-range=10.%d.0.0/16", 16+c.index),
		// No node lifecycle controller runs that would remove the taint from a new node: Pods would never be scheduled.
		"--disable-admission-plugins=TaintNodesByCondition",
		// OpenShift enables it: users who set owner references need more rights there.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--allow-privileged=true",
		// There is no node that could reach the API server by the Service `kubernetes`.
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--enable-priority-and-fairness=%t", c.index == 0), // as in the manifests for the management cluster
		"--audit-policy-file=" + c.auditPolicyFile(),
		"--audit-log-path=" + c.AuditLog,
		"--audit-log-maxsize=16384", // MB: no rotation while tests read the file
		"--profiling=false",
		"--shutdown-delay-duration=0s",
		"--event-ttl=1h",
	}
}

// controllerManagerArgs are the arguments of a cluster's controller manager.
func (c *Cluster) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.kubeconfigOf("kube-controller-manager"),
		"--use-service-account-credentials=true",
		"--controllers=" + strings.Join(controllersOf(c.programs), ","),
		"--service-account-private-key-file=" + c.credentials.accountKey,
		"--root-ca-file=" + c.credentials.ca,
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
		"--profiling=false",
	}
}

// schedulerArgs are the arguments of a cluster's scheduler.
func (c *Cluster) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + c.kubeconfigOf("kube-scheduler"),
		"--secure-port=0",
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
		"--profiling=false",
	}
}

// kwokArgs are the arguments of the program that simulates the kubelets of a cluster.
func (c *Cluster) kwokArgs(stages string) []string {
	args := []string{
		"--kubeconfig=" + c.kubeconfigOf("kwok"),
		"--manage-all-nodes=true",
		fmt.Sprintf("--cidr=10.%d.0.0/16", 116+c.index),
		fmt.Sprintf("--node-ip=10.%d.255.254", 116+c.index),
	}
	files, _ := filepath.Glob(filepath.Join(stages, "*.yaml")) // the pattern is well-formed
	for _, file := range files {
		args = append(args, "--config="+file)
	}
	return args
}

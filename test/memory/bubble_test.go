// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// inProcess sends requests to a Server without a network. It serves no watches.
type inProcess struct{ *Server }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, in)
	return w.Result(), nil
}

// clientOf returns a client of a Server that New made.
func clientOf(t *testing.T, s *Server) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{Host: "http://memory", Transport: inProcess{s}, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// in calls a test in a bubble, with a Server of an application cluster.
func in(t *testing.T, o Options, do func(t *testing.T, s *Server, c *kubernetes.Clientset)) {
	t.Helper()
	if o.Kinds == nil {
		o.Kinds = Application()
	}
	synctest.Test(t, func(t *testing.T) {
		s := New("http://memory", o)
		defer s.Shut()
		if err := s.Create("", "namespaces", newNamespace("shop")); err != nil {
			t.Fatal(err)
		}
		do(t, s, clientOf(t, s))
	})
}

func deploymentOf(image string, n int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	d.Spec.Replicas = &n
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.Labels = map[string]string{"app": "web"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	return d
}

// deployed creates a Deployment, and returns it after a time.
func deployed(t *testing.T, c *kubernetes.Clientset, d *appsv1.Deployment, after time.Duration) *appsv1.Deployment {
	t.Helper()
	if _, err := c.AppsV1().Deployments("shop").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	return deployment(t, c)
}

func deployment(t *testing.T, c *kubernetes.Clientset) *appsv1.Deployment {
	t.Helper()
	d, err := c.AppsV1().Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func podsOf(t *testing.T, c *kubernetes.Clientset) []corev1.Pod {
	t.Helper()
	list, err := c.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// reasons counts the reasons that containers wait for.
func reasons(pods []corev1.Pod) map[string]int {
	out := map[string]int{}
	for _, p := range pods {
		for _, c := range p.Status.ContainerStatuses {
			switch {
			case c.State.Waiting != nil:
				out[c.State.Waiting.Reason]++
			case c.Ready:
				out["ready"]++
			default:
				out["unready"]++
			}
		}
	}
	return out
}

func TestPodsFollowTheTagsOfTheirImages(t *testing.T) {
	for image, want := range map[string]map[string]int{
		"nginx:1": {"ready": 2}, "nginx:broken": {"ImagePullBackOff": 2}, "nginx:crash": {"CrashLoopBackOff": 2}, "nginx:slow": {"unready": 2},
	} {
		t.Run(image, func(t *testing.T) {
			in(t, Options{PodLatency: time.Second}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
				d := deployed(t, c, deploymentOf(image, 2), 2*time.Second)
				if diff := cmp.Diff(want, reasons(podsOf(t, c))); diff != "" {
					t.Error("-want +got:\n" + diff)
				}
				if int(d.Status.ReadyReplicas) != want["ready"] || d.Status.Replicas != 2 || d.Status.ObservedGeneration != d.Generation {
					t.Errorf("status is %+v", d.Status)
				}
				if time.Sleep(4 * time.Second); image == "nginx:slow" && deployment(t, c).Status.ReadyReplicas != 2 {
					t.Error("slow Pods did not get ready")
				}
			})
		})
	}
}

func TestPodsMayBeReadyAndServedAtOnce(t *testing.T) {
	o := Options{DeploymentLatency: time.Second, PodLatency: -1, EndpointLatency: -1}
	in(t, o, func(t *testing.T, s *Server, c *kubernetes.Clientset) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		service.Spec.Selector = map[string]string{"app": "web"}
		if err := s.Create("", "services", service); err != nil {
			t.Fatal(err)
		}
		if d := deployed(t, c, deploymentOf("nginx:1", 2), 1001*time.Millisecond); d.Status.ReadyReplicas != 2 {
			t.Errorf("status is %+v", d.Status)
		}
		slice, err := c.DiscoveryV1().EndpointSlices("shop").Get(t.Context(), "web-slice", metav1.GetOptions{})
		if err != nil || len(slice.Endpoints) != 2 || !*slice.Endpoints[1].Conditions.Ready {
			t.Errorf("%v, endpoints are %v", err, slice)
		}
	})
}

func TestADeploymentReplacesItsPodsWithinItsBounds(t *testing.T) {
	in(t, Options{PodLatency: time.Second, PodEnd: time.Second}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
		d := deploymentOf("nginx:1", 4)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		}
		d = deployed(t, c, d, 3*time.Second)
		d.Spec.Template.Spec.Containers[0].Image = "nginx:2"
		if _, err := c.AppsV1().Deployments("shop").Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			time.Sleep(100 * time.Millisecond)
			alive, serving := 0, 0
			for _, p := range podsOf(t, c) {
				if p.DeletionTimestamp == nil {
					alive++
					if ready(&p) {
						serving++
					}
				}
			}
			if alive > 5 || serving < 4 {
				t.Fatalf("%d Pods, of which %d serve", alive, serving)
			}
		}
		if d = deployment(t, c); d.Status.UpdatedReplicas != 4 || d.Status.Replicas != 4 {
			t.Errorf("status is %+v", d.Status)
		}
	})
}

func TestTheCheapestPodsAreRemovedFirst(t *testing.T) {
	in(t, Options{}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
		d := deployed(t, c, deploymentOf("nginx:1", 3), time.Second)
		dear := podsOf(t, c)[1].Name
		for i, p := range podsOf(t, c) {
			if p.Name == dear {
				i = -100
			}
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, corev1.PodDeletionCost, -i)
			if _, err := c.CoreV1().Pods("shop").Patch(t.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		d.Spec.Replicas = ptr.To[int32](1)
		if _, err := c.AppsV1().Deployments("shop").Update(t.Context(), d, metav1.UpdateOptions{}); !apierrors.IsConflict(err) && err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if left := podsOf(t, c); len(left) != 1 || left[0].Name != dear {
			t.Errorf("%d Pods are left, want %s", len(left), dear)
		}
	})
}

func TestADeploymentReportsItsDeadline(t *testing.T) {
	in(t, Options{}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
		d := deploymentOf("nginx:broken", 1)
		d.Spec.ProgressDeadlineSeconds = ptr.To[int32](60)
		d = deployed(t, c, d, 59*time.Second)
		if got := d.Status.Conditions[1].Reason; got != "ReplicaSetUpdated" {
			t.Errorf("after 59 s the reason is %s", got)
		}
		time.Sleep(5 * time.Second)
		if got := deployment(t, c).Status.Conditions[1]; got.Reason != "ProgressDeadlineExceeded" || got.Status != corev1.ConditionFalse {
			t.Errorf("after 64 s it is %+v", got)
		}
	})
}

func TestJobsEnd(t *testing.T) {
	for image, want := range map[string]batchv1.JobConditionType{"check:1": batchv1.JobComplete, "check:broken": batchv1.JobFailed} {
		t.Run(image, func(t *testing.T) {
			in(t, Options{PodLatency: time.Second, JobLatency: time.Second}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
				job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "check"}}
				job.Spec.BackoffLimit = ptr.To[int32](1)
				job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
				job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
				if _, err := c.BatchV1().Jobs("shop").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				job, err := c.BatchV1().Jobs("shop").Get(t.Context(), "check", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if n := len(job.Status.Conditions); n == 0 || job.Status.Conditions[n-1].Type != want {
					t.Errorf("status is %+v", job.Status)
				}
			})
		})
	}
}

func TestPodsThatAreTestsEnd(t *testing.T) {
	hook := map[string]string{"helm.sh/hook": "test"}
	for sentence, c := range map[string]struct {
		annotations map[string]string
		policy      corev1.RestartPolicy
		want        corev1.PodPhase
	}{
		"a test":                        {hook, corev1.RestartPolicyNever, corev1.PodSucceeded},
		"a test that restarts to pass":  {hook, corev1.RestartPolicyOnFailure, corev1.PodSucceeded},
		"a test that restarts for ever": {hook, corev1.RestartPolicyAlways, corev1.PodRunning},
		"a Pod that is no test":         {nil, corev1.RestartPolicyNever, corev1.PodRunning},
	} {
		t.Run(sentence, func(t *testing.T) {
			in(t, Options{PodLatency: time.Second, JobLatency: time.Second}, func(t *testing.T, _ *Server, k *kubernetes.Clientset) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "it", Annotations: c.annotations}}
				pod.Spec.RestartPolicy = c.policy
				pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "check:1"}}
				if _, err := k.CoreV1().Pods("shop").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				pod, err := k.CoreV1().Pods("shop").Get(t.Context(), "it", metav1.GetOptions{})
				if err != nil || pod.Status.Phase != c.want {
					t.Errorf("%v, phase %s, want %s", err, pod.Status.Phase, c.want)
				}
			})
		})
	}
}

func TestEndpointsThatEndAreTerminating(t *testing.T) {
	in(t, Options{PodEnd: 10 * time.Second}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		service.Spec = corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}
		if _, err := c.CoreV1().Services("shop").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		d := deployed(t, c, deploymentOf("nginx:1", 2), time.Second)
		d.Spec.Replicas = ptr.To[int32](1)
		if _, err := c.AppsV1().Deployments("shop").Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		endpoints := func() (ready, terminating int) {
			slice, err := c.DiscoveryV1().EndpointSlices("shop").Get(t.Context(), "web-slice", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range slice.Endpoints {
				if *e.Conditions.Ready {
					ready++
				}
				if *e.Conditions.Terminating {
					terminating++
				}
			}
			return ready, terminating
		}
		time.Sleep(time.Second)
		if ready, terminating := endpoints(); ready != 1 || terminating != 1 {
			t.Errorf("%d endpoints are ready, %d terminating", ready, terminating)
		}
		time.Sleep(11 * time.Second)
		if ready, terminating := endpoints(); ready != 1 || terminating != 0 {
			t.Errorf("in the end %d endpoints are ready, %d terminating", ready, terminating)
		}
	})
}

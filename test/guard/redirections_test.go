// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// redirections are attempts to change where a production Service sends requests, and to change what does not decide that.
func (s *shop) redirections() []attempt {
	spec := func(name, fields, refused string) attempt {
		return attempt{name, patches(s.service, "", `{"spec":{%s}}`, fields), "only Shipper may change its " + refused}
	}
	port := s.service.Spec.Ports[0]
	more := fmt.Sprintf(`{"name":%q,"port":%d,"targetPort":%d}`, port.Name, port.Port, port.TargetPort.IntVal)
	const metadata = `{"metadata":{%q:{%q:%q}}}`
	replaces := func(edit func(*corev1.Service)) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			service := s.service.DeepCopy()
			edit(service)
			return c.Update(ctx, service)
		}
	}
	return []attempt{
		spec("make a Service an alias of another host", `"type":"ExternalName","externalName":"example.com"`, "type, externalName"),
		spec("make a Service listen on nodes", `"type":"NodePort"`, "type"),
		spec("give a Service a load balancer", `"type":"LoadBalancer","loadBalancerClass":"example.com/x"`, "type"),
		spec("change the ports of a Service", `"ports":[{"name":"http","port":81}]`, "ports"),
		spec("change the target port of a Service", fmt.Sprintf(`"ports":[{"name":%q,"port":%d,"targetPort":9999}]`, port.Name, port.Port),
			"ports"),
		spec("add a port to a Service", `"ports":[`+more+`,{"name":"more","port":8099}]`, "ports"),
		spec("give a Service another address", `"externalIPs":["192.0.2.7"]`, "externalIPs"),
		spec("bind clients to endpoints", `"sessionAffinity":"ClientIP"`, "sessionAffinity"),
		spec("keep requests on their node", `"internalTrafficPolicy":"Local"`, "internalTrafficPolicy"),
		spec("send requests to Pods that are not ready", `"publishNotReadyAddresses":true`, "publishNotReadyAddresses"),
		spec("give a Service addresses of another family", `"ipFamilyPolicy":"PreferDualStack"`, "spec"),
		{"hide a Service from proxies", patches(s.service, "", metadata, "labels", "service.kubernetes.io/service-proxy-name", "x"),
			"only Shipper may change its label service.kubernetes.io/service-proxy-name"},
		{"make proxies ignore a Service", patches(s.service, "", metadata, "labels", "service.kubernetes.io/headless", ""),
			"only Shipper may change its label service.kubernetes.io/headless"},
		{"make a Service prefer endpoints of a zone",
			patches(s.service, "", metadata, "annotations", "service.kubernetes.io/topology-mode", "Auto"),
			"only Shipper may change its annotation service.kubernetes.io/topology-mode"},
		{"delete another Service of Shipper's", removes(s.second), ""},
		{"delete a Service of one's own", removes(s.others[1]), ""},
		{"give a label of one's own to a Service", patches(s.service, "", metadata, "labels", "team", "x"), ""},
		{"write a Service as it is", replaces(func(*corev1.Service) {}), ""},
		{"write a Service without what the API server allocates", replaces(func(service *corev1.Service) {
			service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
			service.Spec.IPFamilies, service.Spec.IPFamilyPolicy = nil, nil
		}), ""},
	}
}

// findEndpoints reads the endpoints of the production Service, and writes an EndpointSlice of another one.
func (s *shop) findEndpoints() {
	s.Helper()
	slices := &discoveryv1.EndpointSliceList{}
	s.Must("listing endpoint slices", world.cluster.List(s.Ctx, slices, client.InNamespace(s.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: s.service.Name}))
	if len(slices.Items) != 1 {
		s.Fatalf("there are %d endpoint slices", len(slices.Items))
	}
	s.slice = &slices.Items[0]
	s.oldEndpoints = s.read(&corev1.Endpoints{}, s.service.Name).(*corev1.Endpoints) //nolint:staticcheck // see shop
	s.ownSlice = anEndpointSlice(s.Namespace, aService(s.Namespace, nil).Name)
	s.ownSlice.Name = "beside"
	s.Must("creating an endpoint slice of others", world.cluster.Create(s.Ctx, s.ownSlice))
}

// endpoints are attempts to write the endpoints of a production Service, and those of others.
func (s *shop) endpoints() []attempt {
	const refused = "only Kubernetes' controllers may write its endpoints"
	const address = `{"endpoints":[{"addresses":["10.1.2.3"]}]}`
	service, slice := s.service.Name, s.slice
	own := aService(s.Namespace, nil).Name
	const label = `{"metadata":{"labels":{%q:%s}}}`
	of := discoveryv1.LabelServiceName
	const annotated = `{"metadata":{"annotations":{"note":"x"}}}`
	return []attempt{
		{"write an EndpointSlice of a production Service", makes(anEndpointSlice(s.Namespace, service)), refused},
		{"write an EndpointSlice with Shipper's labels", func(ctx context.Context, c client.Client) error {
			slice := anEndpointSlice(s.Namespace, service)
			slice.Labels[shipper.AppLabel] = appName
			return c.Create(ctx, slice)
		}, refused},
		{"give an EndpointSlice to a production Service", patches(s.ownSlice, "", label, of, `"`+service+`"`), refused},
		{"write into an EndpointSlice of a production Service", patches(slice, "", address), refused},
		{"change the ports of an EndpointSlice", patches(slice, "", `{"ports":[{"name":"http","port":9999}]}`), refused},
		{"take an EndpointSlice from a production Service", patches(slice, "", label, of, "null"), refused},
		{"hide an EndpointSlice from proxies", patches(slice, "", label, corev1.IsHeadlessService, `""`), refused},
		{"write the Endpoints of a production Service",
			patches(s.oldEndpoints, "", `{"subsets":[{"addresses":[{"ip":"10.1.2.3"}],"ports":[{"port":80}]}]}`), refused},
		{"annotate an EndpointSlice", patches(slice, "", annotated), ""},
		{"annotate Endpoints", patches(s.oldEndpoints, "", annotated), ""},
		{"delete an EndpointSlice", removes(slice), ""},
		{"write an EndpointSlice of another Service", makes(anEndpointSlice(s.Namespace, own)), ""},
		{"write an EndpointSlice of no Service", makes(anEndpointSlice(s.Namespace, "")), ""},
		{"write into an EndpointSlice of one's own", patches(s.ownSlice, "", address), ""},
	}
}

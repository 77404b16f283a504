// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig returns a configuration with one context, named like the cluster.
func kubeconfig(name, user string, config *rest.Config) *clientcmdapi.Config {
	out := clientcmdapi.NewConfig()
	addContext(out, name, user, config)
	out.CurrentContext = name
	return out
}

// addContext adds a cluster to a configuration, with a context of the same name.
func addContext(out *clientcmdapi.Config, name, user string, config *rest.Config) {
	out.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
	}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
}

// writeKubeconfig writes a configuration that only its owner may read.
func writeKubeconfig(config *clientcmdapi.Config, path string) error {
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

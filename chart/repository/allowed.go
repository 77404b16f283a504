// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"net/url"

	"shipper.dev/shipper/outward"
)

// wording is what errors say of URLs that charts may not be fetched from.
var wording = outward.Wording{
	NotListed: func(p outward.Policy, _ *url.URL) string {
		return fmt.Sprintf("charts may be fetched only from %s; use such a URL, "+
			"or ask an administrator of Shipper to add this one (--chart-repositories)", p)
	},
	NotThere: "which charts are not fetched from",
}

// checkOCI is Policy.Check for an OCI registry's URL.
func checkOCI(p outward.Policy, u *url.URL) error {
	_, err := checkRegistry(p, u)
	return err
}

// checkRegistry is Policy.Check for an OCI registry's URL, whose scheme does not imply a protocol: https or, if only http is allowed,
// http.
func checkRegistry(p outward.Policy, u *url.URL) (plain bool, err error) {
	asked := *u
	asked.Scheme = "https"
	why := p.Check(&asked)
	if asked.Scheme = "http"; why != nil && p.Check(&asked) == nil {
		return true, nil
	}
	return false, why
}

// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"flag"
	"strconv"
)

// Parallel runs n tests of a package in parallel, unless the flag -parallel is set: tests mostly wait for controllers, and by
// default only as many run as there are cores. TestMain calls it before the tests run.
func Parallel(n int) error {
	flag.Parse()
	const name = "test.parallel"
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == name })
	if said {
		return nil
	}
	return flag.Set(name, strconv.Itoa(n))
}

// Packages that a process may never need are loaded when they are first used: a start takes less time.
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

/**
 * The exports of a package, which is loaded with the first of them that is read. Loaded with `require`: for an `import` Node first scans
 * CommonJS files for exported names, which takes longer than the rest, and reads each export of its own modules: of `node:http` they lead to
 * all of `fetch`.
 */
export function lazyPackage<Package extends object>(name: string): Package {
  let loaded: Package | undefined
  return new Proxy({} as Package, {
    get(_, key) {
      loaded ??= require(name) as Package
      return loaded[key as keyof Package]
    },
  })
}

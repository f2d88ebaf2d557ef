// Certificates of a small authority, made by openssl, for NATS and the nodes that connect to it.
import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const hasOpenssl = spawnSync('openssl', ['version']).error === undefined

const openssl = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'pipe' })
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** Makes `<name>.crt` and `<name>.key` of an authority. */
export function makeAuthority(dir: string, name: string): void {
  const [crt, key] = [join(dir, `${name}.crt`), join(dir, `${name}.key`)]
  openssl('req', '-x509', ...KEY, '-keyout', key, '-out', crt, '-days', '2', '-subj', `/CN=${name}`)
}

/** Makes `<name>.crt` and `<name>.key` that an authority of the same folder has signed, valid for this machine, or for these names. */
export function makeCertificate(
  dir: string,
  name: string,
  authority: string,
  names = 'IP:127.0.0.1,DNS:localhost',
): void {
  const at = (ending: string) => join(dir, `${name}.${ending}`)
  writeFileSync(at('ext'), `subjectAltName=${names}\n`)
  openssl('req', ...KEY, '-keyout', at('key'), '-out', at('csr'), '-subj', `/CN=${name}`)
  const signer = [
    '-CA',
    join(dir, `${authority}.crt`),
    '-CAkey',
    join(dir, `${authority}.key`),
    '-CAcreateserial',
  ]
  openssl('x509', '-req', '-in', at('csr'), ...signer, '-out', at('crt'), '-days', '2', '-extfile', at('ext'))
}

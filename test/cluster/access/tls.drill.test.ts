// @module-tag drill
// Nodes that reach NATS over TLS, with certificates or credentials of their own, and what they say where NATS refuses them.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Settings, temporaryFolder } from '../../support/test-server.ts'
import { untilHealth } from '../faults/run.ts'
import { hasNats, TestCluster } from '../support.ts'
import { hasOpenssl, makeAuthority, makeCertificate } from './certificates.ts'
import { makeOperator } from './credentials.ts'

const canRun = hasNats && hasOpenssl
const skipped = canRun ? '' : ' (needs nats-server and openssl)'
const dir = temporaryFolder()
const at = (name: string) => join(dir, name)
const TLS = `cert_file: "${at('server.crt')}", key_file: "${at('server.key')}"`

let cluster: TestCluster | null = null
beforeAll(() => {
  if (!canRun) return
  for (const authority of ['ca', 'other']) makeAuthority(dir, authority)
  makeCertificate(dir, 'server', 'ca')
  makeCertificate(dir, 'node', 'ca')
  makeCertificate(dir, 'foreign', 'other')
})
afterEach(async () => {
  await cluster?.remove()
  cluster = null
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

/** A reader that NATS must not take: its /health and its log have the sentence. */
async function refused(
  settings: Settings,
  sentence: RegExp,
  env: Record<string, string> = {},
): Promise<void> {
  const reader = cluster!.launch({ role: 'reader', ...settings }, { env })
  await untilHealth(await reader.listening, sentence)
  expect([...reader.lines, ...reader.errorLines].join('\n')).toMatch(sentence)
  await reader.kill()
}

describe.skipIf(!canRun)(`NATS with TLS${skipped}`, () => {
  test('is reached with its authority, and refused with another one or none', {
    timeout: 60_000,
  }, async () => {
    cluster = await TestCluster.start({ config: `tls { ${TLS} }` })
    const ca = { 'bus-login': `ca=${at('ca.crt')}` }
    await cluster.writer(ca)
    await cluster.reader(ca)
    await refused(
      { 'bus-login': `ca=${at('other.crt')}` },
      /the certificate of NATS is not of the authority in \S*other\.crt/,
    )
    await refused({}, /of an authority that this machine does not know: give --bus-login ca=FILE/)
    await refused({ 'bus-login': `ca=${at('missing.crt')}` }, /missing\.crt doesn't exist/)
  })

  test('that asks for certificates takes those of its authority alone', { timeout: 60_000 }, async () => {
    cluster = await TestCluster.start({ config: `tls { ${TLS}, ca_file: "${at('ca.crt')}", verify: true }` })
    const as = (name: string) => ({
      'bus-login': `ca=${at('ca.crt')},cert=${at(`${name}.crt`)},key=${at(`${name}.key`)}`,
    })
    await cluster.writer(as('node'))
    await cluster.reader(as('node'))
    await refused(as('foreign'), /NATS has not answered: it may not take the certificate in \S*foreign\.crt/)
    await refused(
      { 'bus-login': `ca=${at('ca.crt')}` },
      /NATS has not answered: it may ask for a certificate of this process/,
    )
  })

  test('is asked for where a setting says so: one without TLS is refused', { timeout: 60_000 }, async () => {
    cluster = await TestCluster.start()
    await refused({ 'bus-login': `ca=${at('ca.crt')}` }, /NATS offers no TLS, which --bus-login/)
  })
})

describe.skipIf(!canRun)(`NATS whose users have credentials files${skipped}`, () => {
  test('takes those of its operator alone', { timeout: 60_000 }, async () => {
    const [ours, theirs] = [makeOperator(), makeOperator()]
    for (const name of ['writer', 'reader']) writeFileSync(at(`${name}.creds`), ours.userCredentials(name))
    writeFileSync(at('foreign.creds'), theirs.userCredentials('reader'))
    cluster = await TestCluster.start({ config: ours.config })
    await cluster.writer({ 'bus-login': `credentials=${at('writer.creds')}` })
    const reader = await cluster.reader({ 'bus-login': `credentials=${at('reader.creds')}` })
    await reader.client.register('through the reader')
    await refused(
      { 'bus-login': `credentials=${at('foreign.creds')}` },
      /NATS does not take the credentials in \S*foreign\.creds/,
    )
    await refused(
      { 'bus-login': `credentials=${at('missing.creds')}` },
      /no such file or directory, open '\S*missing\.creds'/,
    )
    await refused({}, /NATS asks who this is: give --bus-login/)
  })
})

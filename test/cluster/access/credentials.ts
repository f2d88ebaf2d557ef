// What `nsc` makes for a NATS whose users have credentials files: an operator, an account, and users of it, as signed tokens.
import { randomUUID } from 'node:crypto'
import { nkeys } from '@nats-io/transport-node'

type Pair = ReturnType<typeof nkeys.createUser>

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function token(name: string, subject: Pair, issuer: Pair, nats: object): string {
  const head = encoded({ typ: 'JWT', alg: 'ed25519-nkey' })
  const claims = { jti: randomUUID(), iat: Math.floor(Date.now() / 1_000), iss: issuer.getPublicKey(), name }
  const body = encoded({ ...claims, sub: subject.getPublicKey(), nats: { version: 2, ...nats } })
  const signature = issuer.sign(Buffer.from(`${head}.${body}`))
  return `${head}.${body}.${Buffer.from(signature).toString('base64url')}`
}

const UNLIMITED = {
  ...{ subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
  ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
}

export interface Operator {
  /** Lines of the configuration of NATS. */
  config: string
  /** The text of a credentials file. */
  userCredentials(name: string): string
}

export function makeOperator(): Operator {
  const [operator, account, system] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()]
  const operatorToken = token('operator', operator, operator, { type: 'operator' })
  const accountToken = token('mintlake', account, operator, { type: 'account', limits: UNLIMITED })
  const systemToken = token('system', system, operator, {
    type: 'account',
    limits: { ...UNLIMITED, mem_storage: 0, disk_storage: 0, streams: 0, consumer: 0 },
  })
  return {
    config: `operator: ${operatorToken}
system_account: ${system.getPublicKey()}
resolver: MEMORY
resolver_preload: { ${account.getPublicKey()}: ${accountToken}, ${system.getPublicKey()}: ${systemToken} }`,
    userCredentials: (name) => {
      const user = nkeys.createUser()
      const limits = { subs: -1, data: -1, payload: -1 }
      const seed = Buffer.from(user.getSeed()).toString()
      return [
        '-----BEGIN NATS USER JWT-----',
        token(name, user, account, { type: 'user', pub: {}, sub: {}, ...limits }),
        '------END NATS USER JWT------',
        '-----BEGIN USER NKEY SEED-----',
        seed,
        '------END USER NKEY SEED------',
        '',
      ].join('\n')
    },
  }
}

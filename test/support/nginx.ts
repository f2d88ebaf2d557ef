// Debian's nginx with the configuration that this project ships, on free ports and with a certificate of its own.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './free-port.ts'

const CONFIG = new URL('../../scripts/nginx.conf', import.meta.url)
/** Debian has it in a folder that is on the PATH of root alone. */
const PROGRAM = existsSync('/usr/sbin/nginx') ? '/usr/sbin/nginx' : 'nginx'
export const PROXY_NAME = 'mintlake.example'
const START_MS_MAX = 10_000

/** Whether nginx and openssl can be run here. */
export const hasNginx = (): boolean =>
  spawnSync(PROGRAM, ['-v']).error === undefined && spawnSync('openssl', ['version']).error === undefined

/** Replaces what an operator replaces. Throws where the file does not have it. */
function replaced(text: string, changes: readonly [string, string][]): string {
  return changes.reduce((made, [from, to]) => {
    if (!made.includes(from)) throw new Error(`scripts/nginx.conf has no ${from}`)
    return made.replaceAll(from, to)
  }, text)
}

function makeCertificate(folder: string): { certificate: string; key: string } {
  const [certificate, key] = [join(folder, 'fullchain.pem'), join(folder, 'privkey.pem')]
  const subject = ['-subj', `/CN=${PROXY_NAME}`, '-addext', `subjectAltName=DNS:${PROXY_NAME}`]
  const kind = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ]
  execFileSync('openssl', [...kind, ...subject, '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  return { certificate, key }
}

/** What Debian's nginx.conf has around a site, with every file in `folder`. */
const mainConfig = (folder: string): string => `
  ${process.getuid?.() === 0 ? 'user root;' : ''}
  daemon off;
  worker_processes 1;
  pid ${folder}/nginx.pid;
  error_log stderr error;
  events { worker_connections 1024; }
  http {
    access_log off;
    gzip on;
    ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/tmp;`).join(' ')}
    include ${folder}/mintlake.conf;
  }
`

async function untilListening(port: number, child: ChildProcess): Promise<void> {
  const untilMs = performance.now() + START_MS_MAX
  while (performance.now() < untilMs && child.exitCode === null) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await sleep(20)
  }
  throw new Error('nginx did not start')
}

export interface Nginx {
  port: number
  plainPort: number
  /** PEM, to trust. */
  ca: string
  stop(): Promise<void>
}

/** Starts nginx in front of the server at `upstream`, such as `127.0.0.1:8080`. Its files lie in `folder`. */
export async function startNginx(folder: string, upstream: string): Promise<Nginx> {
  const [port, plainPort] = [await freePort(), await freePort()]
  const { certificate, key } = makeCertificate(folder)
  mkdirSync(join(folder, 'tmp'))
  const site = replaced(readFileSync(CONFIG, 'utf8'), [
    ['server 127.0.0.1:8080', `server ${upstream}`],
    ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
    ['listen 80;', `listen 127.0.0.1:${plainPort};`],
    ['listen [::]:443 ssl http2;', ''],
    ['listen [::]:80;', ''],
    ['/etc/ssl/mintlake/fullchain.pem', certificate],
    ['/etc/ssl/mintlake/privkey.pem', key],
  ])
  writeFileSync(join(folder, 'mintlake.conf'), site)
  writeFileSync(join(folder, 'nginx.conf'), mainConfig(folder))
  const child = spawn(PROGRAM, ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exited = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGTERM')
    await exited
  }
  try {
    await untilListening(port, child)
  } catch (error) {
    if (child.exitCode === null) await stop()
    throw error
  }
  return { port, plainPort, ca: readFileSync(certificate, 'utf8'), stop }
}

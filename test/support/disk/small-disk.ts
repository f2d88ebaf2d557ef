// A folder on a small disk in a mount namespace of its own, which a test can fill completely; or the reason why this machine does
// not allow it.
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** As root, or as any user where user namespaces are permitted. */
const UNSHARES = [['--mount'], ['--mount', '--user', '--map-root-user']] as const
const ENTERS = [['--mount'], ['--mount', '--user', '--preserve-credentials']] as const
const PAGE_BYTES = 4_096
const KEEP = 'mount -t tmpfs -o size="$2" tmpfs "$1" && echo ready && exec cat'

/** Index of the way that works here; -1 if none does. */
const way: number =
  process.platform === 'linux'
    ? UNSHARES.findIndex(
        (flags) =>
          spawnSync('unshare', [...flags, 'sh', '-c', KEEP, 'sh', '/mnt', '64k'], { input: '' }).status === 0,
      )
    : -1

/** Why small disks cannot be made here; null if they can. */
export const noSmallDisk: string | null =
  way === -1 ? 'a disk of its own needs Linux, and root or namespaces of users' : null

export interface SmallDisk {
  /** The folder's path as seen from this process. */
  root: string
  /** The command prefix that runs a command in the disk's namespace. */
  within: readonly string[]
  /** Fills the disk until `leftBytes` are left. */
  fill(leftBytes: number): void
  /** Removes the filling. */
  clear(): void
  /** Runs a command in the disk's namespace. Returns its output. */
  run(command: string, words: readonly string[]): Promise<string>
  remove(): Promise<void>
}

/** Appends to `path` until the disk is full, then truncates it by `leftBytes`. */
function fillUp(path: string, leftBytes: number): void {
  const file = openSync(path, 'a')
  try {
    for (;;) writeSync(file, new Uint8Array(PAGE_BYTES))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    ftruncateSync(file, Math.max(0, fstatSync(file).size - leftBytes))
  } finally {
    closeSync(file)
  }
}

/** Mounts a disk of `size` (in the notation of `mount`) at `folder`, which must exist; with `beside` in its namespace. */
export async function openSmallDisk(folder: string, size: string, beside?: SmallDisk): Promise<SmallDisk> {
  const [command, ...words] = beside?.within ?? ['unshare', ...UNSHARES[way]]
  const keeper = spawn(command, [...words, 'sh', '-c', KEEP, 'sh', folder, size], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(keeper, 'exit')
  await once(keeper.stdout, 'data')
  const within = ['nsenter', '--target', String(keeper.pid), ...ENTERS[way], '--']
  const root = join(`/proc/${keeper.pid}/root`, folder)
  const filling = join(root, 'filling')
  return {
    root,
    within,
    fill: (leftBytes) => fillUp(filling, leftBytes),
    clear: () => rmSync(filling, { force: true }),
    run: async (command, words) =>
      (await promisify(execFile)(within[0], [...within.slice(1), command, ...words])).stdout,
    async remove() {
      keeper.stdin.end()
      await exited
    },
  }
}

/**
 * The identity of this process as other processes see it. It names the machine and the process id, so that a neighbour
 * on the same machine notices at once that a process is dead, instead of waiting for its leases to expire.
 */
import { hostname } from 'node:os'

/** Identities in use in this very process. */
const here = new Set<string>()

/** Returns "host/pid/name". The identity counts as alive until `retire` is called or the process ends. */
export function identify(name: string): string {
  const identity = `${hostname()}/${process.pid}/${name}`
  here.add(identity)
  return identity
}

/** Ends an identity of this process: from now on it counts as dead. */
export function retire(identity: string): void {
  here.delete(identity)
}

/** Returns true only if the identity is certainly dead: it belongs to this machine and its process has ended. */
export function isGone(identity: string): boolean {
  const [host, pid] = identity.split('/')
  if (host !== hostname() || !/^[1-9]\d*$/.test(pid ?? '')) return false
  if (Number(pid) === process.pid) return !here.has(identity)
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

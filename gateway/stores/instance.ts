/**
 * Which process did it. The name says on which machine and under which process number it runs, so that a neighbour can
 * tell a dead one at once instead of waiting until it has not been heard of for long.
 */
import { hostname } from 'node:os'

/** Instances living in this very process. */
const here = new Set<string>()

/** The full name of an instance of this process: "host/pid/word". It lives until `retire`. */
export function identify(word: string): string {
  const instance = `${hostname()}/${process.pid}/${word}`
  here.add(instance)
  return instance
}

export function retire(instance: string): void {
  here.delete(instance)
}

/** True where the instance is certainly dead: it ran on this machine and its process is no more. */
export function isGone(instance: string): boolean {
  const [host, pid] = instance.split('/')
  if (host !== hostname() || !/^[1-9]\d*$/.test(pid ?? '')) return false
  if (Number(pid) === process.pid) return !here.has(instance)
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

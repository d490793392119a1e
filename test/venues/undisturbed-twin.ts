/**
 * The regime and the costs as they would be without a fault: the same plugins on the same venues, whose requests no fault
 * applies to. Answers of the service under test are compared with those of the twin.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPluginHost, type PluginHost } from '../plugins/plugin-host.ts'
import cost from '../../plugins/cost/index.ts'
import market from '../../plugins/market/index.ts'
import regime from '../../plugins/regime/index.ts'
import { UNDISTURBED } from './faults.ts'
import type { SteppedJobs } from './stepped-jobs.ts'
import type { VenueKit } from './venue-kit.ts'

/** Opens the twin of a gateway whose catalog is in `catalogDir`. Its jobs run beside those of the gateway. */
export async function openUndisturbedTwin(
  kit: VenueKit,
  jobs: SteppedJobs,
  catalogDir: string,
): Promise<Pick<PluginHost, 'call' | 'stop'>> {
  const settingsOf = (product: string) =>
    (
      JSON.parse(readFileSync(join(catalogDir, `${product}.json`), 'utf8')) as {
        settings: Readonly<Record<string, unknown>>
      }
    ).settings
  const plugins = { market, regime, cost }
  const host = await openPluginHost(
    Object.entries(plugins).map(([name, plugin]) => ({ plugin, settings: settingsOf(name) })),
    {
      dataMode: 'online',
      now: () => new Date(kit.clock.now()),
      fetch: (input, init) => fetch(input, { ...init, headers: [...new Headers(init?.headers), [UNDISTURBED, '1']] }),
    },
  )
  let isStopped = false
  const begun = new Set<string>()
  for (const job of host.registrations.flatMap((registration) => registration.jobs ?? [])) {
    if (begun.has(job.name)) throw new Error(`two jobs of the twin have the name ${job.name}`)
    begun.add(job.name)
    const run = async (): Promise<void> => {
      if (isStopped) return
      const at = jobs.now()
      await host.run(job.name)
      jobs.after(Math.max(0, job.everySeconds * 1000 - (jobs.now() - at)), run)
    }
    jobs.after(0, run)
  }
  return {
    call: host.call,
    async stop() {
      isStopped = true
      await host.stop()
    },
  }
}

/**
 * The data of the project's own catalog after its first start. To compute them takes half a minute of one core, so the tests
 * of one run do it once, and start from a copy. `npm test` makes them before any test needs them, which may not wait so long.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { readConfig } from '../../gateway/config/config.ts'
import type { JobCount } from '../../gateway/products/jobs.ts'
import type { Facts } from '../../gateway/plugin/plugin.ts'
import { openGateway } from './gateway.ts'
import { until } from './until.ts'

const root = resolve(import.meta.dirname, '../..')
/** The environment variables that select the project's own catalog. */
export const OWN_CATALOG = { CATALOG_DIR: join(root, 'catalog'), PLUGIN_DIRS: join(root, 'plugins') }
const FILE = 'products.sqlite'

/** Shared by the processes of a run; mocha alone makes its own. */
let folder = process.env['TEST_RUN_FOLDER']

/** Copies the data into the data folder of a gateway that has not started yet. */
export async function copyFirstStart(environment: Readonly<Record<string, string>>): Promise<void> {
  const { dataDir } = readConfig(environment)
  const made = await firstStart()
  mkdirSync(dataDir, { recursive: true })
  cpSync(made, join(dataDir, FILE))
}

/** Makes the file of the products. Whoever asks first makes it, and the others wait. */
export async function firstStart(): Promise<string> {
  if (folder === undefined) {
    const own = mkdtempSync(join(tmpdir(), 'first-start-'))
    folder = own
    process.once('exit', () => rmSync(own, { recursive: true, force: true }))
  }
  const [data, ready, failed] = ['first-start', 'first-start-ready', 'first-start-failed'].map((name) =>
    join(folder as string, name),
  ) as [string, string, string]
  const file = join(readConfig({ DATA_DIR: data }).dataDir, FILE)
  try {
    mkdirSync(data)
  } catch {
    await until(() => existsSync(ready) || existsSync(failed), 100)
    if (existsSync(failed)) throw new Error('The first start of the own catalog failed in another test.')
    return file
  }
  try {
    await startFirst(data)
    writeFileSync(ready, '')
  } catch (error) {
    writeFileSync(failed, '')
    throw error
  }
  return file
}

async function startFirst(data: string): Promise<void> {
  const shop = await openGateway({ ...OWN_CATALOG, DATA_DIR: data }, { inMemory: false })
  const get = async (path: string): Promise<Record<string, unknown>> =>
    (await (await fetch(shop.url + path)).json()) as Record<string, unknown>
  // Every job has ended its first run, and the record is graded once every minute of the history is stored.
  await until(async () => !isBusy(await shop.gateway.current.facts()) && 'brier' in (await get('/v1/stats')), 100)
  await until(async () => (await get('/health'))['status'] === 'ok', 100)
  await shop.close()
}

function isBusy(facts: Readonly<Record<string, Facts>>): boolean {
  const jobs = Object.values(facts).flatMap(({ jobs = {} }) => Object.values(jobs as Record<string, JobCount>))
  return jobs.some(({ runs }) => runs === 0)
}

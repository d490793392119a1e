import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../..')

/**
 * Prints the shape of an object of nextTick, and once more after full garbage collections during `work`. Everything that a
 * start needs is there before, so that nothing is collected between the first print and the start.
 */
const program = (work: string): string => `
import { mkdtempSync, rmSync } from 'node:fs'
import { executionAsyncResource } from 'node:async_hooks'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGateway } from './gateway/compose.ts'
import { readConfig } from './gateway/config/config.ts'
import { NETWORKS } from './gateway/config/networks.ts'
import { createScriptedSettler } from './test/support/settler.ts'
const folder = mkdtempSync(join(tmpdir(), 'tollgate-'))
const config = readConfig({
  DATA_DIR: folder,
  LOG_LEVEL: 'silent',
  CATALOG_DIR: 'test/fixtures/shop/catalog',
  PLUGIN_DIRS: 'test/fixtures/shop/plugins',
})
const network = NETWORKS['base-sepolia']
const settler = createScriptedSettler({ network, now: () => new Date() })
const payTo = '0x00000000000000000000000000000000000000A1'
const settlement = { network, payTo, settler, sandbox: null, close: async () => {} }
const { default: show } = await import('data:text/javascript,export default (value) => %25DebugPrint(value)')
const tick = () => new Promise((done) => process.nextTick(() => done(show(executionAsyncResource()))))
await tick()
const work = ${work}
const collecting = setInterval(gc, 50)
await work
clearInterval(collecting)
await tick()
rmSync(folder, { recursive: true })
process.exit()
`

/** The addresses of the shapes, as V8 prints them. */
function shapes(work: string): readonly string[] {
  const flags = ['--allow-natives-syntax', '--expose-gc', '--import', 'tsx/esm', '--input-type=module']
  const { stdout } = spawnSync(process.execPath, [...flags, '-e', program(work)], { cwd: root, encoding: 'utf8' })
  return [...stdout.matchAll(/^ - map: (0x[0-9a-f]+)/gm)].map(([, address = '']) => address)
}

describe('the shape of the objects of nextTick', () => {
  it('outlasts the full garbage collections of a start, and only if it is kept', () => {
    const [before, after, ...more] = shapes('createGateway(config, { settlement, inMemory: true })')
    expect([before === after, before?.slice(0, 2), more]).to.deep.equal([true, '0x', []])
    expect(new Set(shapes('sleep(100)')).size, 'not kept').to.equal(2)
  })
})

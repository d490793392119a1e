import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../../..')

/** Prints the shape of an object of nextTick before and after full garbage collections. */
const program = (beginning: string): string => `
import { executionAsyncResource } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { keepTickShape } from './gateway/http/tick-shape.ts'
const { default: show } = await import('data:text/javascript,export default (value) => %25DebugPrint(value)')
const tick = () => new Promise((done) => process.nextTick(() => done(show(executionAsyncResource()))))
${beginning}
await sleep(20)
await tick()
for (let times = 0; times < 2; times += 1) {
  await sleep(20)
  gc()
}
await tick()
`

/** The addresses of the shapes, as V8 prints them. */
function shapes(beginning: string): readonly string[] {
  const flags = ['--allow-natives-syntax', '--expose-gc', '--import', 'tsx/esm', '--input-type=module']
  const { stdout } = spawnSync(process.execPath, [...flags, '-e', program(beginning)], { cwd: root, encoding: 'utf8' })
  return [...stdout.matchAll(/^ - map: (0x[0-9a-f]+)/gm)].map(([, address = '']) => address)
}

describe('the shape of the objects of nextTick', () => {
  it('outlasts a full garbage collection if it is kept, and only then', () => {
    const [before, after, ...more] = shapes('keepTickShape()')
    expect([before === after, before?.slice(0, 2), more]).to.deep.equal([true, '0x', []])
    expect(new Set(shapes('')).size, 'not kept').to.equal(2)
  })
})

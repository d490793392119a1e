import { spawnSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { expect } from 'chai'
import { createLog } from '../../../gateway/observe/log.ts'
import { sourceStack } from '../../../gateway/observe/source-positions.ts'

const SOURCE = `interface Price {
  readonly amount: number
}

export function priceOf(price: Price): number {
  if (price.amount < 0)
    throw new RangeError('a negative price')
  return price.amount
}
`

describe('the positions in a stack', () => {
  let folder: string
  before(async () => {
    folder = join(realpathSync(mkdtempSync(join(tmpdir(), 'positions-'))))
    writeFileSync(join(folder, 'price.ts'), SOURCE)
    writeFileSync(join(folder, 'index.ts'), `type A = 1\n\nimport { lost } from './price.mjs'\nexport default lost`)
    await build({
      absWorkingDir: folder,
      entryPoints: ['price.ts', 'index.ts'],
      outdir: join(folder, 'compiled folder'),
      outExtension: { '.js': '.mjs' },
      format: 'esm',
      sourcemap: 'external',
    })
  })
  after(() => rmSync(folder, { recursive: true }))

  /** Returns the stack of the error that `program` throws. `price` is the compiled module. */
  function stackOf(program: string): string {
    const source = `import(process.argv[1]).then((price) => { ${program} }).catch(({ stack }) => console.log(stack))`
    const module = pathToFileURL(join(folder, 'compiled folder/price.mjs')).href
    return spawnSync(process.execPath, ['--eval', source, module], { encoding: 'utf8' }).stdout
  }

  it('are those of the sources', () => {
    const stack = stackOf('price.priceOf({ amount: -1 })')
    expect(stack).to.contain(`compiled%20folder/price.mjs:3:11`)
    expect(sourceStack(stack)).to.match(
      new RegExp(`^RangeError: a negative price\n    at Module\\.priceOf \\(${folder}/price\\.ts:7:11\\)`),
    )
  })

  it('keep a failed import without a column', () => {
    const stack = stackOf(`return import(process.argv[1].replace('price', 'index'))`)
    expect(stack).to.match(/^file:.*index\.mjs:\d+\n/)
    expect(sourceStack(stack)).to.match(new RegExp(`^${folder}/index\\.ts:3\n`))
  })

  it('stay as they are without a source map', () => {
    writeFileSync(join(folder, 'plain.js'), '')
    writeFileSync(join(folder, 'broken.js'), '')
    writeFileSync(join(folder, 'broken.js.map'), '{ "version"')
    for (const file of ['plain.js', 'broken.js', 'gone.js', 'price.ts'])
      for (const place of [join(folder, file), pathToFileURL(join(folder, file)).href]) {
        const stack = `Error: x\n    at f (${place}:3:7)\n    at node:internal/timers:581:17`
        expect(sourceStack(stack)).to.equal(stack)
      }
  })

  it('are those of the sources in the log, also for the cause of an error', () => {
    const cause = new Error('the cause')
    cause.stack = stackOf('price.priceOf({ amount: -1 })')
    let line = ''
    createLog('info', { write: (text) => void (line = text) }).error({ err: new Error('outer', { cause }) }, 'failed')
    const { err } = JSON.parse(line) as { err: { type: string; message: string; stack: string } }
    expect(err).to.include({ type: 'Error', message: 'outer: the cause' })
    expect(err.stack).to.contain(
      `caused by: RangeError: a negative price\n    at Module.priceOf (${folder}/price.ts:7:11)`,
    )
  })

  it('do not hinder the log of something that is no error', () => {
    let line = ''
    createLog('info', { write: (text) => void (line = text) }).error({ err: 'only text' }, 'failed')
    expect(JSON.parse(line)).to.include({ err: 'only text', msg: 'failed' })
  })
})

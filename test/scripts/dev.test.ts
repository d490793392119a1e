import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { wordProduct } from '../dynamic/live-gateway.ts'
import { skipWithoutAnvil } from '../gateway/sandbox/usdc-client.ts'
import { type Started, startNode } from '../support/process.ts'

const TOLLGATE = resolve(import.meta.dirname, '../../scripts/tollgate.mjs')

describe('tollgate dev of a checkout', () => {
  let folder: string
  let gateway: Started
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }
  before(function () {
    skipWithoutAnvil(this)
    folder = mkdtempSync(join(tmpdir(), 'tollgate-dev-'))
  })
  after(async () => {
    await gateway?.stop()
    if (folder) rmSync(folder, { recursive: true, force: true })
  })

  it('runs the sources of gateway, plugins and threads in another folder, where packages of ours are not found', async () => {
    write('catalog/words.json', JSON.stringify(wordProduct('words')))
    write('plugins/words/length.ts', 'export default (word: string): number => word.length')
    write(
      'plugins/words/index.ts',
      `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({
  name: 'words',
  setup: ({ work }) => ({
    handlers: { getWord: async (call) => ({ word: await work(new URL('./length.ts', import.meta.url), 'tide', { call }) }) },
  }),
})`,
    )
    const port = await freePort()
    const places = { CATALOG_DIR: join(folder, 'catalog'), PLUGIN_DIRS: join(folder, 'plugins') }
    gateway = await startNode([TOLLGATE, 'dev'], /is open at/, { ...places, PORT: String(port) }, folder)
    const answer = await fetch(`http://127.0.0.1:${port}/v1/words`)
    expect([answer.status, await answer.json()], gateway.output()).to.deep.equal([200, { word: 4 }])
  })
})

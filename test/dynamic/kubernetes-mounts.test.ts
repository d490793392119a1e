/** Files as Kubernetes mounts a ConfigMap: each is a link through `..data`, which one rename points elsewhere. */
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { json } from '../support/agent.ts'
import { SERVICE } from '../support/catalog.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'
import { pluginSaying, until, word } from './live-gateway.ts'

/** Publishes files as the kubelet does: writes a new folder, renames the link to it, and removes the old folder. */
function publish(mount: string, files: Readonly<Record<string, unknown>>): void {
  const former = readdirSync(mount).filter((name) => name.startsWith('..2'))
  const release = `..2026_${former.length}_${Math.random()}`
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(mount, release, file)), { recursive: true })
    writeFileSync(join(mount, release, file), typeof content === 'string' ? content : JSON.stringify(content))
  }
  symlinkSync(release, join(mount, '..data_tmp'))
  renameSync(join(mount, '..data_tmp'), join(mount, '..data'))
  const wanted = new Set(Object.keys(files).map((file) => file.split('/')[0] as string))
  const present = readdirSync(mount).filter((name) => !name.startsWith('..'))
  for (const name of wanted) if (!present.includes(name)) symlinkSync(join('..data', name), join(mount, name))
  for (const name of present) if (!wanted.has(name)) rmSync(join(mount, name))
  for (const name of former) rmSync(join(mount, name), { recursive: true })
}

describe('folders that Kubernetes mounts', () => {
  let folder: string
  let shop: TestGateway
  const catalog = (): string => join(folder, 'catalog')
  const plugin = (): string => join(folder, 'plugins/late')
  const get = (path: string): Promise<Response> => fetch(shop.url + path)
  const says = async (path: string): Promise<unknown> => {
    const answer = await get(path)
    return answer.status === 200 ? (await json(answer))['word'] : answer.status
  }
  const code = (text: string) => ({ 'index.ts': pluginSaying('late'), 'word.ts': `export const word = '${text}'\n` })

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-mounts-'))
    for (const mount of [catalog(), plugin()]) mkdirSync(mount, { recursive: true })
    publish(catalog(), { 'service.json': SERVICE, 'late.json': word('late') })
    publish(plugin(), code('one'))
    shop = await openGateway({ CATALOG_DIR: catalog(), PLUGIN_DIRS: join(folder, 'plugins') })
  })
  after(async () => {
    await shop.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('are served like other folders', async () => {
    expect(await says('/v1/late')).to.equal('one')
    expect(shop.gateway.issues).to.deep.equal([])
  })

  it('deliver new code with every change of the mount', async () => {
    for (const text of ['two', 'three', 'four']) {
      publish(plugin(), code(text))
      await until(async () => (await says('/v1/late')) === text)
    }
  })

  it('deliver and remove documents with a change of the mount, in sub-folders too', async () => {
    const documents = { 'service.json': SERVICE, 'late.json': word('late') }
    const again = { ...word('late', { route: 'GET /v1/again' }, { product: 'again' }) }
    const more = { ...again, operations: { getAgain: { ...again.operations.getWord, handler: 'getWord' } } }
    publish(catalog(), { ...documents, 'x/again.json': more })
    await until(async () => (await says('/v1/again')) === 'four')
    publish(catalog(), { ...documents, 'x/again.json': { ...more, summary: 'Said anew.' } })
    await until(() => shop.gateway.current.catalog.products.some(({ summary }) => summary === 'Said anew.'))
    publish(catalog(), documents)
    await until(async () => (await says('/v1/again')) === 404)
    expect(await says('/v1/late')).to.equal('four')
    expect(shop.gateway.issues).to.deep.equal([])
  })

  it('keep the last valid products if a change of the mount has issues', async () => {
    publish(catalog(), { 'service.json': SERVICE, 'late.json': '{ "product": ' })
    await until(() => shop.gateway.issues.length > 0)
    expect(await says('/v1/late')).to.equal('four')
    publish(catalog(), { 'service.json': SERVICE, 'late.json': word('late') })
    await until(() => shop.gateway.issues.length === 0)
  })
})

/** Files as Kubernetes mounts a ConfigMap: each is a link through `..data`, which one rename points elsewhere. */
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { json } from '../support/agent.ts'
import { SERVICE } from '../support/catalog.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'
import { wordPlugin, wordProduct } from './live-gateway.ts'
import { until } from '../support/until.ts'

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
  const published = new Set(Object.keys(files).map((file) => file.split('/')[0] as string))
  const present = readdirSync(mount).filter((name) => !name.startsWith('..'))
  for (const name of published) if (!present.includes(name)) symlinkSync(join('..data', name), join(mount, name))
  for (const name of present) if (!published.has(name)) rmSync(join(mount, name))
  for (const name of former) rmSync(join(mount, name), { recursive: true })
}

describe('folders that Kubernetes mounts', () => {
  let folder: string
  let shop: TestGateway
  const catalog = (): string => join(folder, 'catalog')
  const plugin = (): string => join(folder, 'plugins/late')
  const get = (path: string): Promise<Response> => fetch(shop.url + path)
  const wordOrStatus = async (path: string): Promise<unknown> => {
    const answer = await get(path)
    return answer.status === 200 ? (await json(answer))['word'] : answer.status
  }
  const code = (text: string) => ({ 'index.ts': wordPlugin('late'), 'word.ts': `export const word = '${text}'\n` })

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-mounts-'))
    for (const mount of [catalog(), plugin()]) mkdirSync(mount, { recursive: true })
    publish(catalog(), { 'service.json': SERVICE, 'late.json': wordProduct('late') })
    publish(plugin(), code('one'))
    shop = await openGateway({ CATALOG_DIR: catalog(), PLUGIN_DIRS: join(folder, 'plugins') })
  })
  after(async () => {
    await shop.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('are served like ordinary folders', async () => {
    expect(await wordOrStatus('/v1/late')).to.equal('one')
    expect(shop.gateway.issues).to.deep.equal([])
  })

  it('deliver new code with every update of the mount', async () => {
    for (const text of ['two', 'three', 'four']) {
      publish(plugin(), code(text))
      await until(async () => (await wordOrStatus('/v1/late')) === text)
    }
  })

  it('add, change and remove catalog documents with an update of the mount, in sub-folders too', async () => {
    const documents = { 'service.json': SERVICE, 'late.json': wordProduct('late') }
    const copy = wordProduct('late', { route: 'GET /v1/second' }, { product: 'second' })
    const second = { ...copy, operations: { getSecond: { ...copy.operations.getWord, handler: 'getWord' } } }
    publish(catalog(), { ...documents, 'x/second.json': second })
    await until(async () => (await wordOrStatus('/v1/second')) === 'four')
    publish(catalog(), { ...documents, 'x/second.json': { ...second, summary: 'Another word.' } })
    await until(() => shop.gateway.current.catalog.products.some(({ summary }) => summary === 'Another word.'))
    publish(catalog(), documents)
    await until(async () => (await wordOrStatus('/v1/second')) === 404)
    expect(await wordOrStatus('/v1/late')).to.equal('four')
    expect(shop.gateway.issues).to.deep.equal([])
  })

  it('keep the last valid products on sale if an update of the mount has errors', async () => {
    publish(catalog(), { 'service.json': SERVICE, 'late.json': '{ "product": ' })
    await until(() => shop.gateway.issues.length > 0)
    expect(await wordOrStatus('/v1/late')).to.equal('four')
    publish(catalog(), { 'service.json': SERVICE, 'late.json': wordProduct('late') })
    await until(() => shop.gateway.issues.length === 0)
  })
})

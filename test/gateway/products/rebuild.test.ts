import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { callOperation } from '../../../gateway/testing/testing.ts'
import { log } from '../../fixtures/plugins/gold/index.ts'
import { PLANS, gold, PRICED, thing } from '../../support/catalog.ts'
import { idsOf, useEditions } from './edition-fixture.ts'

describe('an edition that follows another', () => {
  const { open, build, write, writeSchema, remove } = useEditions()

  it('reuses a product that has not changed, without migrations or set-up', async () => {
    const { edition } = await open({ 'gold.json': gold() })
    const next = await build(edition)
    await edition.stop()
    expect(next.edition).not.to.equal(edition)
    expect(next.edition.catalog.version).to.equal(edition.catalog.version)
    expect(log).to.deep.equal(['migrated', 'set up gold'])
  })

  it('applies a new price without a new set-up', async () => {
    const { edition } = await open({ 'gold.json': gold() })
    write('gold.json', gold({ price: '0.006' }))
    const next = await build(edition)
    expect(next.edition.catalog.operations.get('getGold')?.price).to.equal(6000n)
    expect(edition.catalog.operations.get('getGold')?.price).to.equal(5000n)
    expect(log).to.deep.equal(['migrated', 'set up gold'])
  })

  it('sets a product up again if its settings change, and stops the old one when it is released', async () => {
    const { edition } = await open({ 'gold.json': gold() })
    write('gold.json', gold({}, { settings: { unit: 'gram' } }))
    const next = await build(edition)
    expect(await callOperation(edition, 'getGold', { asOf: new Date(0) })).to.include({ unit: 'ounce' })
    expect(await callOperation(next.edition, 'getGold', { asOf: new Date(0) })).to.include({ unit: 'gram' })
    expect(log).not.to.include('stopped gold')
    await edition.stop()
    expect(log.filter((line) => line === 'stopped gold')).to.have.length(1)
  })

  it('adds and removes products', async () => {
    const { edition } = await open({ 'gold.json': gold() })
    write('tin.json', thing('throws'))
    const withBoth = await build(edition)
    expect(idsOf(withBoth.edition)).to.deep.equal(['gold', 'throws'])
    remove('gold.json')
    const withOne = await build(withBoth.edition)
    expect(idsOf(withOne.edition)).to.deep.equal(['throws'])
    await edition.stop()
    expect(log).not.to.include('stopped gold')
    await withBoth.edition.stop()
    expect(log).to.include('stopped gold')
  })

  const invalid: readonly (readonly [string, unknown])[] = [
    ['a wrong price', gold({ price: '0.0000001' })],
    ['only half of its text', '{ "product": "gold",'],
    [
      'fewer operations than its plugin has handlers',
      { ...gold(), operations: { getGold: gold().operations.getGold } },
    ],
    ['settings that the plugin refuses', gold({ price: '0.007' }, { settings: { unit: 'stone' } })],
    ['a plugin that does not exist', gold({}, { plugin: 'nowhere' })],
  ]
  for (const [title, document] of invalid)
    it(`keeps a product as it was if its new document has ${title}`, async () => {
      const { edition } = await open({ 'gold.json': gold(), 'tin.json': thing('throws') })
      write('gold.json', document)
      const next = await build(edition)
      expect(next.issues.map(({ file }) => file)).to.include('gold.json')
      expect(next.edition.catalog.operations.get('getGold')?.price).to.equal(5000n)
      expect(await callOperation(next.edition, 'getGold', { asOf: new Date(0) })).to.include({ price: 1900 })
      expect(next.edition.disabled).to.deep.equal([])
      expect(idsOf(next.edition)).to.deep.equal(['gold', 'throws'])
      expect(next.edition.catalog.version).to.equal(edition.catalog.version)
      await edition.stop()
      write('gold.json', gold({ price: '0.008' }))
      const repaired = await build(next.edition)
      expect(repaired.issues).to.deep.equal([])
      expect(repaired.edition.catalog.operations.get('getGold')?.price).to.equal(8000n)
    })

  const conflicting: readonly (readonly [string, object])[] = [
    ['route', thing('throws', { route: 'GET /v1/gold' })],
    ['operation', { ...thing('throws'), operations: { getGold: { ...thing('throws').operations.getThing } } }],
    ['product', { ...thing('throws'), product: 'gold' }],
    ['tool', { ...thing('throws'), operations: { get_gold: { ...thing('throws').operations.getThing, tool: true } } }],
    [
      'address',
      thing('throws', { route: 'GET /v1/{any}', params: { type: 'object', properties: { any: { type: 'string' } } } }),
    ],
  ]
  for (const [claim, document] of conflicting)
    it(`leaves the ${claim} with the product that has it, whatever the file of the new product is called`, async () => {
      const { edition } = await open({ 'gold.json': gold() })
      write('a.json', document)
      const next = await build(edition)
      expect(next.issues.map(({ file }) => file)).to.include('a.json')
      expect(next.issues.map(({ file }) => file)).not.to.include('gold.json')
      expect(idsOf(next.edition)).to.deep.equal(['gold'])
      expect(next.edition.disabled.map(({ file }) => file)).to.deep.equal(['a.json'])
    })

  const schemas: readonly (readonly [string, unknown])[] = [
    ['is half written', '{ "$id": '],
    ['lacks a definition that the catalog refers to', { $id: 'gold.json', $defs: {} }],
    ['is not a valid schema', { $id: 'gold.json', $defs: { Price: { type: 'nonsense' } } }],
    ['does not accept the example of the product', { $id: 'gold.json', $defs: { Price: { type: 'string' } } }],
  ]
  for (const [title, schema] of schemas)
    it(`keeps the previous schema if its file ${title}`, async () => {
      const response = { $ref: 'gold.json#/$defs/Price' }
      const document = gold({ response, example: { request: {}, response: { price: 1 } } })
      const valid = { $id: 'gold.json', $defs: { Price: PRICED } }
      const { edition } = await open({ 'gold.json': document, 'tin.json': thing('throws') }, {}, { 'gold.json': valid })
      writeSchema('gold.json', schema)
      write('tin.json', thing('throws', { price: '0.02' }))
      const next = await build(edition)
      expect(next.issues.length).to.be.greaterThan(0)
      expect(idsOf(next.edition)).to.deep.equal(['gold', 'throws'])
      expect(next.edition.catalog.schemas.get('gold.json')).to.deep.equal(valid)
      expect(next.edition.catalog.operations.get('getThing')?.price).to.equal(20_000n)
      expect(await callOperation(next.edition, 'getGold', { asOf: new Date(0) })).to.include({ price: 1900 })
      writeSchema('gold.json', valid)
      expect((await build(next.edition)).issues).to.deep.equal([])
    })

  it('sells what another file of plans adds, and stays as it was if that file has an issue', async () => {
    const { edition } = await open({ 'gold.json': gold(), 'plans.json': PLANS })
    const more = { ...PLANS.plans[0], plan: 'club-7d', route: 'POST /v1/plans/club', tier: 'club' }
    const plansOf = ({ bound }: typeof edition): string[] =>
      [...bound.values()].flatMap(({ operation: { plan } }) => plan?.plan ?? [])
    write('club.plans.json', { plans: [more] })
    const added = await build(edition)
    expect(added.issues).to.deep.equal([])
    expect(plansOf(added.edition)).to.deep.equal(['live-24h', 'club-7d'])
    write('club.plans.json', { plans: [{ ...more, plan: 'club-8d' }] })
    const changed = await build(added.edition)
    expect(plansOf(changed.edition)).to.deep.equal(['live-24h', 'club-8d'])
    for (const broken of ['{', '{ "plans": [{}] }']) {
      write('club.plans.json', broken)
      const next = await build(changed.edition)
      expect(next.edition).to.equal(changed.edition)
      expect(next.issues[0]?.file).to.equal('club.plans.json')
    }
  })

  it('is not built if service.json has an issue: the previous edition stays', async () => {
    const { edition } = await open({ 'gold.json': gold() })
    write('service.json', '{ "name": "" }')
    const next = await build(edition)
    expect(next.edition).to.equal(edition)
    expect(next.issues[0]?.file).to.equal('service.json')
  })

  it('is not built if the folder of the catalog has gone: the previous edition stays, and the issue says why', async () => {
    const { edition } = await open({ 'gold.json': gold() })
    const next = await build(edition, { catalogDir: join(tmpdir(), 'no-such-catalog') })
    expect(next.edition).to.equal(edition)
    expect(next.issues.map(({ file, rule }) => [file, rule])).to.deep.equal([['service.json', 'read']])
  })

  it('has no product whose page has no view, and keeps one whose view has gone', async () => {
    const viewDir = mkdtempSync(join(tmpdir(), 'tollgate-views-'))
    const page = (view: string) => thing('throws', { view, price: 'free', response: undefined })
    try {
      await open({ 'page.json': page('card') })
      const first = await build(undefined, { viewDirs: [viewDir] })
      const missing = [['page.json', '/operations/getThing/view', 'view']]
      expect(first.issues.map(({ file, pointer, rule }) => [file, pointer, rule])).to.deep.equal(missing)
      expect(idsOf(first.edition)).to.deep.equal([])
      writeFileSync(join(viewDir, 'card.pug'), 'p')
      const second = await build(first.edition, { viewDirs: [viewDir] })
      expect([idsOf(second.edition), second.issues]).to.deep.equal([['throws'], []])
      rmSync(join(viewDir, 'card.pug'))
      const third = await build(second.edition, { viewDirs: [viewDir] })
      expect([idsOf(third.edition), third.issues]).to.deep.equal([['throws'], []])
      write('page.json', page('table'))
      const fourth = await build(third.edition, { viewDirs: [viewDir] })
      expect(fourth.issues.map(({ file, pointer, rule }) => [file, pointer, rule])).to.deep.equal(missing)
      expect(fourth.edition.catalog.operations.get('getThing')?.view).to.equal('card')
    } finally {
      rmSync(viewDir, { recursive: true })
    }
  })

  it('compiles a schema again if it has changed', async () => {
    const document = gold({ response: { $ref: 'gold.json#/$defs/Price' } })
    const priced = { $id: 'gold.json', $defs: { Price: PRICED } }
    const { edition } = await open({ 'gold.json': document }, {}, { 'gold.json': priced })
    expect(await callOperation(edition, 'getGold', { asOf: new Date(0) })).to.include({ price: 1900 })
    writeSchema('gold.json', { $id: 'gold.json', $defs: { Price: { required: ['cost'] } } })
    const next = await build(edition)
    const failure = await callOperation(next.edition, 'getGold', { asOf: new Date(0) }).catch((error: unknown) => error)
    expect(failure).to.include({ code: 'product_failed' })
  })
})

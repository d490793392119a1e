import { expect } from 'chai'
import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { CatalogError, lineOf } from '../../../gateway/validation/issue.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { offeredOn } from '../../../gateway/x402/payment-requirements.ts'
import { SERVICE, thing } from '../../support/catalog.ts'
import { OPERATION } from '../../support/operation.ts'

const NETWORKS_OF_PAYMENT = new Set(['base', 'polygon'])
const PAYEE = '0x00000000000000000000000000000000000000A1'

describe('the networks of a route', () => {
  const build = (fields: object, service: object = {}, networks: ReadonlySet<string> | null = NETWORKS_OF_PAYMENT) =>
    createCatalog(
      [
        { file: 'service.json', kind: 'service', content: { ...SERVICE, ...service } },
        { file: 'thing.json', kind: 'product', content: thing('thing', { ...fields }) },
      ],
      new Map(),
      networks === null ? {} : { networks },
    )
  const acceptsOf = (...built: Parameters<typeof build>) => build(...built).catalog.operations.get('getThing')?.accepts

  it('are those it names, or those of the service, or all networks', () => {
    expect(acceptsOf({})).to.equal(null)
    expect(acceptsOf({}, { accepts: ['base'] })).to.deep.equal(['base'])
    expect(acceptsOf({ accepts: ['polygon'] }, { accepts: ['base'] })).to.deep.equal(['polygon'])
  })

  it('are reported as an issue of the route, or of the whole catalog, if no payments are taken on any of them', () => {
    const { catalog, issues } = build({ accepts: ['moon', 'mars'] })
    expect(issues.map(lineOf)).to.deep.equal([
      'thing.json#/operations/getThing/accepts No payments are taken on moon or mars. Write a network of NETWORK: base, polygon.',
    ])
    expect(catalog.operations.size).to.equal(0)
    expect(build({ accepts: ['moon', 'base'] }).issues).to.deep.equal([])
    expect(() => build({}, { accepts: ['moon'] })).to.throw(CatalogError, 'service.json#/accepts')
  })

  it('are not checked on the local chain, which stands for any network', () => {
    expect(build({ accepts: ['moon'] }, {}, null).issues).to.deep.equal([])
    const recipients = [{ network: NETWORKS['base-sepolia'], payTo: PAYEE }] as const
    expect(offeredOn({ ...OPERATION, accepts: ['moon'] }, recipients)).to.deep.equal(recipients)
    const two = [...recipients, { network: NETWORKS.base, payTo: PAYEE }] as const
    expect(offeredOn({ ...OPERATION, accepts: ['base'] }, two)).to.deep.equal([two[1]])
  })
})

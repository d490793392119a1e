import { resolve } from 'node:path'
import { parsePaymentRequired } from '@x402/core/schemas'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import type { Operation } from '../../../gateway/plugin/catalog.ts'
import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { readDocuments } from '../../../gateway/catalog/documents.ts'
import { readSchemas } from '../../../gateway/catalog/schemas.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { type Challenges, createChallenges, type Quote } from '../../../gateway/x402/challenge.ts'
import { bodyOf, decode, entryOfV1 } from '../../support/quote.ts'

const root = resolve(import.meta.dirname, '../../..')
const baseUrl = 'https://shop.example'
const required = new ServiceError('payment_required')

for (const [name, folder] of [
  ['our own catalog', 'catalog'],
  ['the catalog of the tests', 'test/fixtures/shop/catalog'],
] as const)
  describe(`every 402 of ${name}`, () => {
    let priced: Operation[]
    let challenges: Challenges
    const quote = (operation: Operation): Quote => challenges.write(operation, baseUrl + operation.path, required)

    before(async () => {
      const { documents } = await readDocuments(resolve(root, folder))
      const { schemas } = await readSchemas(resolve(root, 'schemas'))
      const { catalog } = createCatalog(documents, schemas)
      priced = [...catalog.operations.values()].filter(({ price, internal }) => price !== null && !internal)
      challenges = createChallenges({
        catalog,
        network: NETWORKS.base,
        formats: [createExactEvm(NETWORKS.base)],
        payTo: '0x00000000000000000000000000000000000000A1',
        baseUrl,
      })
      expect(priced).to.not.be.empty
    })

    it('fits into a 2 KB header', () => {
      const long = priced.filter((operation) => quote(operation).header.length > 2_048).map(({ id }) => id)
      expect(long).to.deep.equal([])
    })

    it('is valid in both versions of x402', () => {
      for (const operation of priced) {
        for (const object of [decode(quote(operation)), bodyOf(quote(operation))])
          expect(parsePaymentRequired(object).success, operation.id).to.equal(true)
        for (const entry of bodyOf(quote(operation)).accepts) entryOfV1.parse({ ...entry, resource: `${baseUrl}/x` })
      }
    })

    it('has a discovery extension whose info is valid by its own schema', () => {
      for (const operation of priced) {
        const { extensions, resource } = decode(quote(operation))
        for (const { info, schema } of [extensions.bazaar, extensions['payment-identifier']]) {
          const ajv = new Ajv2020({ strict: false, validateFormats: false })
          expect(ajv.validate(schema, info), `${operation.id}: ${ajv.errorsText()}`).to.equal(true)
        }
        expect(extensions.bazaar.info.input['method']).to.equal(operation.method)
        expect(resource.description.length, operation.id).to.be.within(1, 500)
      }
    })

    it('describes what to send and what comes back, without which indexers register no route', () => {
      type Part = { readonly properties: Readonly<Record<string, unknown>> }
      for (const operation of priced) {
        const { properties } = decode(quote(operation)).extensions.bazaar.schema as Part
        const [input, output] = [(properties['input'] as Part).properties, (properties['output'] as Part).properties]
        expect(input['body'] ?? input['queryParams'], operation.id).to.be.an('object')
        expect(output['example'], operation.id).to.be.an('object')
      }
    })
  })

import { resolve } from 'node:path'
import { parsePaymentRequired } from '@x402/core/schemas'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import type { Catalog, Operation } from '../../../gateway/plugin/catalog.ts'
import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { readDocuments } from '../../../gateway/catalog/documents.ts'
import { fieldsOf, readSchemas } from '../../../gateway/catalog/schemas.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { type Challenges, createChallenges, type Quote } from '../../../gateway/x402/challenge.ts'
import { isObject } from '../../../gateway/validation/json.ts'
import { bodyOf, type Challenge, decode, entryOfV1 } from '../../support/quote.ts'

const root = resolve(import.meta.dirname, '../../..')
const baseUrl = 'https://shop.example'
const required = new ServiceError('payment_required')

interface Part {
  readonly properties?: Readonly<Record<string, Part>>
}

for (const [name, folder] of [
  ['our own catalog', 'catalog'],
  ['the catalog of the tests', 'test/fixtures/shop/catalog'],
] as const)
  describe(`every 402 of ${name}`, () => {
    let priced: Operation[]
    let schemas: Catalog['schemas']
    let challengesAt: (address: string) => Challenges
    let challenges: Challenges
    const quote = (operation: Operation): Quote => challenges.write(operation, baseUrl + operation.path, required)

    before(async () => {
      const { documents } = await readDocuments(resolve(root, folder))
      schemas = (await readSchemas(resolve(root, 'schemas'))).schemas
      const { catalog } = createCatalog(documents, schemas)
      priced = [...catalog.operations.values()].filter(({ price, internal }) => price !== null && !internal)
      const formats = [createExactEvm(NETWORKS.base)]
      const payTo = '0x00000000000000000000000000000000000000A1'
      challengesAt = (address) =>
        createChallenges({ catalog, network: NETWORKS.base, formats, payTo, baseUrl: address })
      challenges = challengesAt(baseUrl)
      expect(priced).to.not.be.empty
    })

    it('fits into a header of 3,200 characters, and its body into 16 kB', () => {
      const isLong = ({ header, v1 }: Quote): boolean => header.length > 3_200 || JSON.stringify(v1).length > 16_000
      const long = priced.filter((operation) => isLong(quote(operation))).map(({ id }) => id)
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

    it('says in the header what to send and what comes back, without which indexers register no route', () => {
      for (const operation of priced) {
        const { id, query, body, example } = operation
        const { info, schema } = decode(quote(operation)).extensions.bazaar
        const input = (schema as Part).properties?.['input']?.properties ?? {}
        const shown = input['body'] ?? input['queryParams']
        for (const name of Object.keys(fieldsOf(body ?? query, schemas)))
          expect(shown?.properties?.[name], `${id}: ${name}`).to.be.an('object')
        const [answer, answerShown] = [example?.response, info.output.example]
        if (!isObject(answer)) continue
        if (!isObject(answerShown)) expect.fail(`${id} shows no example of its answer`)
        expect(Object.keys(answer), id).to.include.members(Object.keys(answerShown))
        expect(Object.keys(answerShown).length, id).to.be.at.least(Math.min(10, Object.keys(answer).length))
        for (const [name, value] of Object.entries(answer))
          if (typeof value === 'number' && name in answerShown)
            expect(answerShown[name], `${id}: ${name}`).to.equal(value)
      }
    })

    it('says less, and nothing that is wrong, as the room shrinks', () => {
      for (let characters = 1; characters <= 801; characters += 200) {
        const longer = `https://${'a'.repeat(characters)}.example`
        const { write } = challengesAt(longer)
        for (const operation of priced) {
          const { header, v2 } = write(operation, longer + operation.path, required)
          const { info, schema } = (v2 as unknown as Challenge).extensions.bazaar
          expect(header.length, operation.id).to.be.at.most(3_200)
          const ajv = new Ajv2020({ strict: false, validateFormats: false })
          expect(ajv.validate(schema, info), `${operation.id}, ${characters}: ${ajv.errorsText()}`).to.equal(true)
        }
      }
    })
  })

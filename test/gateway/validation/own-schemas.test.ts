/** At run time the gateway trusts its own schemas, so that a start does not check them by their meta-schema. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { PROJECT_ROOT } from '../../../gateway/config/project-root.ts'

const folder = join(PROJECT_ROOT, 'schemas')
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.json'))
const ajv = new Ajv2020({ strict: true })

/** What is wrong with a schema; null if it is valid. */
function faultOf(schema: object): string | null {
  return ajv.validateSchema(schema) === true ? null : ajv.errorsText(ajv.errors, { dataVar: 'schema' })
}

describe('the schemas of the project', () => {
  for (const file of files)
    it(`${file.replaceAll('\\', '/')} is a valid JSON Schema`, () => {
      expect(faultOf(JSON.parse(readFileSync(join(folder, file), 'utf8')) as object)).to.equal(null)
    })

  it('are checked by a meta-schema that finds a mistake', () => {
    expect(faultOf({ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'numbr' })).to.contain(
      'schema/type',
    )
  })
})

import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const { properties } = JSON.parse(readFileSync(join(root, 'schemas/config.json'), 'utf8')) as {
  properties: Record<string, { description: string; default?: string | number | boolean }>
}

describe('the README', () => {
  it('says of every variable what the schema says, and names no other', () => {
    const rows = readme.split('\n').filter((line) => /^\| `[A-Z_]+`/.test(line))
    const cells = rows.map((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|')))
    const said = Object.fromEntries(
      cells
        .filter((cell) => cell[1] !== '`DATA_MODE`' || cell.length > 4)
        .map((cell) => [cell[1]?.replaceAll('`', ''), cell.slice(2, 4)]),
    )
    const meant = Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [
        name,
        [property.default === undefined ? '' : `\`${String(property.default)}\``, property.description],
      ]),
    )
    expect(said).to.deep.equal(meant)
  })

  it('names only npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>
    }
    const named = [...readme.matchAll(/npm run ([a-z:-]+)/g)].map((match) => match[1] as string)
    expect(named.filter((name) => !(name in scripts))).to.deep.equal([])
  })
})

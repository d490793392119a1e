import { expect } from 'chai'
import { exampleCurl } from '../../../../gateway/documents/pages/example-request.ts'

const BASE = 'https://shop.example'

const catalog = { schemas: new Map() }
const text = { type: 'string' }
const body = { type: 'object', properties: { file: { type: 'string', format: 'binary' }, preset: text, n: text } }
const curl = (operation: Omit<Parameters<typeof exampleCurl>[0], 'body'>): string =>
  exampleCurl({ ...operation, body }, catalog, BASE)

describe('a request as a curl command', () => {
  it('has the path and the query of the example', () => {
    const example = { request: { params: { serial: 'A 1' }, query: { limit: 2, day: '2026-03-01' } } }
    expect(curl({ method: 'GET', path: '/v1/bar/{serial}', bodyMedia: [], example })).to.equal(
      "curl -i 'https://shop.example/v1/bar/A%201?limit=2&day=2026-03-01'",
    )
  })

  it('sends JSON quoted for the shell', () => {
    const example = { request: { body: { name: "o'hara" } } }
    expect(curl({ method: 'POST', path: '/v1/a', bodyMedia: ['application/json'], example })).to.equal(
      `curl -i -X POST 'https://shop.example/v1/a' \\\n  -H 'content-type: application/json' \\\n  --data-binary '{"name":"o'\\''hara"}'`,
    )
  })

  it('sends the fields of a form and files by name', () => {
    const example = { request: { body: { file: 'a,b\n1,2', preset: 'large', n: 3 } } }
    const form = { method: 'POST', path: '/a', example } as const
    expect(curl({ ...form, bodyMedia: ['multipart/form-data'] })).to.equal(
      "curl -i -X POST 'https://shop.example/a' \\\n  -F 'file=@file' \\\n  -F 'preset=large' \\\n  -F 'n=3'",
    )
    expect(
      curl({
        ...form,
        example: { request: { body: { email: 'a@b.c' } } },
        bodyMedia: ['application/x-www-form-urlencoded'],
      }),
    ).to.equal("curl -i -X POST 'https://shop.example/a' \\\n  --data-urlencode 'email=a@b.c'")
  })

  it('has only the URL if there is no example', () => {
    expect(curl({ method: 'GET', path: '/v1/{a}', bodyMedia: [], example: null })).to.equal(
      "curl -i 'https://shop.example/v1/{a}'",
    )
  })
})

/** Writes the example request of an operation as a curl command. */
import type { Operation } from '../../plugin/plugin.ts'

type Shown = Pick<Operation, 'method' | 'path' | 'bodyMedia' | 'example'>

/** Returns path and query of the example request. Parameters without an example stay in braces. */
export function examplePath({ path, example }: Pick<Shown, 'path' | 'example'>): string {
  const { params = {}, query = {} } = example?.request ?? {}
  const filled = path.replace(/\{([^}]+)\}/g, (braces, name: string) =>
    params[name] === undefined ? braces : encodeURIComponent(text(params[name])),
  )
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, text(value)]),
  ).toString()
  return filled + (search === '' ? '' : `?${search}`)
}

/** Returns the example request as a curl command. A JSON body is one argument, a form has one argument per field. */
export function curl({ method, path, bodyMedia, example }: Shown, baseUrl: string): string {
  const url = quoted(baseUrl + examplePath({ path, example }))
  const lines = [method === 'GET' ? `curl -i ${url}` : `curl -i -X ${method} ${url}`]
  return [...lines, ...bodyArguments(bodyMedia[0], example?.request.body)].join(' \\\n  ')
}

function bodyArguments(media: string | undefined, body: unknown): readonly string[] {
  if (media === undefined || body === undefined) return []
  if (media === 'multipart/form-data')
    return Object.entries(body as object).map(([name, value]) =>
      name === 'file' ? `-F ${quoted('file=@ledger.csv')}` : `-F ${quoted(`${name}=${text(value)}`)}`,
    )
  if (media === 'application/x-www-form-urlencoded')
    return Object.entries(body as object).map(([name, value]) => `--data-urlencode ${quoted(`${name}=${text(value)}`)}`)
  return [`-H ${quoted(`content-type: ${media}`)}`, `-d ${quoted(text(body))}`]
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Quotes a value for the shell. */
function quoted(value: string): string {
  return `'${value.replaceAll("'", String.raw`'\''`)}'`
}

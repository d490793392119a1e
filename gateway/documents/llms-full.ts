/** /llms-full.txt: the text of /llms.txt, and then all that the OpenAPI document says of each operation, in Markdown. */
import type { Catalog } from '../plugin/catalog.ts'
import { dollars } from '../dollars.ts'
import type { DocumentContext } from './document.ts'
import { groups } from './listed-operations.ts'
import { llms } from './llms.ts'
import { openapi } from './openapi.ts'
import { type Article, articleOf } from './pages/docs-operation.ts'
import type { OpenApi } from './pages/openapi-types.ts'
import type { Field } from './pages/schema-fields.ts'

/** Returns the text. It has every operation that the OpenAPI document lists, by product. */
export function llmsFull(catalog: Catalog, context: DocumentContext): string {
  const document = openapi(catalog, context) as unknown as OpenApi
  const { schemas } = document.components
  const sections = groups(catalog).flatMap(({ title, summary, operations }) => [
    `## ${title}`,
    summary,
    ...operations.flatMap(({ method, path }) => {
      const operation = document.paths[path]?.[method.toLowerCase()]
      if (!operation) return []
      const entry = { path, method, operation }
      return textOf(articleOf(entry, { schemas, catalog, baseUrl: context.baseUrl, recipients: context }))
    }),
  ])
  return [llms(catalog, context).trimEnd(), ...sections].join('\n\n').concat('\n')
}

function textOf({ method, path, summary, description, price, parameters, body, answer, code }: Article): string[] {
  return [
    `### ${method} ${path}`,
    `${summary} ${price === null ? 'Free.' : `Costs $${dollars(price)}.`}`,
    description.replace(summary, '').trim(),
    ...fields('Parameters', parameters),
    ...fields(`Body, ${body?.media ?? ''}`, body?.fields ?? []),
    ...(code?.texts[0] ? ['Example:', fenced(code.texts[0].text, 'sh')] : []),
    ...fields(`Answer, ${answer.media}`, answer.fields),
    ...(answer.example === null ? [] : ['Example of the answer:', fenced(answer.example, 'json')]),
  ].filter((part) => part !== '')
}

function fields(title: string, all: readonly Field[]): string[] {
  if (all.length === 0) return []
  const lines = all.map(({ name, type, required, limits, description, default: byDefault }) => {
    const facts = [type, limits, required ? 'required' : '', byDefault === '' ? '' : `default ${byDefault}`]
    return `- \`${name}\` (${facts.filter(Boolean).join('; ')})${description === '' ? '' : `: ${description}`}`
  })
  return [`${title}:`, lines.join('\n')]
}

const fenced = (text: string, language: string): string => `\`\`\`${language}\n${text}\n\`\`\``

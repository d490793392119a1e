/**
 * True if an Accept header allows a media type (RFC 9110, section 12.5.1). Types are case-insensitive, a range such as
 * application/* allows every type in it, and the most exact entry decides: with q=0 it excludes the type.
 *
 * @param type in lower case, without parameters
 */
export function acceptsMediaType(accept: string, type: string): boolean {
  const qualities = new Map(accept.split(',').map(qualityOf))
  const range = `${type.slice(0, type.indexOf('/'))}/*`
  return (qualities.get(type) ?? qualities.get(range) ?? qualities.get('*/*') ?? 0) > 0
}

/** Returns the media range of an entry with its quality. Other parameters do not matter here. */
function qualityOf(entry: string): [range: string, quality: number] {
  const [range = '', ...parameters] = entry.toLowerCase().split(';')
  const quality = parameters.map((parameter) => /^\s*q=([\d.]+)\s*$/.exec(parameter)?.[1]).find(Boolean)
  return [range.trim(), Number(quality ?? 1)]
}

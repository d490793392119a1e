// Calls an operation with what a form says, for a payment if it has a price, and shows the answer. Refills the code of the
// page while somebody fills in the form.
import { clearProblems, showProblems } from './problems.js'
import { curl, python, toolCall, typescript } from './snippets.js'
import { buy, messageFor, transactionOf } from './wallet.js'

const MULTIPART = 'multipart/form-data'
const TEXT = /json|^text\/|xml|^$/
/** Longer answers would make the page slow. */
const MAX_SHOWN = 200_000
const MAX_CODE = 20_000

for (const part of document.querySelectorAll('[data-script]')) part.hidden = false

for (const form of document.querySelectorAll('form.call')) {
  const sale = {}
  const button = form.querySelector('button')
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    button.disabled = true
    clearProblems(form)
    call(form, sale)
      .catch((error) => refuse(form, error))
      .finally(() => (button.disabled = false))
  })
  for (const input of form.querySelectorAll('[data-file-of]'))
    input.addEventListener(
      'change',
      () => (document.getElementById(input.dataset.fileOf).disabled = input.value !== ''),
    )
}

async function call(form, sale) {
  const { method = 'GET', amount } = form.dataset
  const { url, media, body, files } = requestOf(form)
  const content = encode(media, body, files)
  const ask = (headers) =>
    fetch(url, {
      method,
      headers: {
        accept: 'application/json, */*;q=0.5',
        ...(media && media !== MULTIPART ? { 'content-type': media } : {}),
        ...headers,
      },
      ...(media ? { body: content } : {}),
      cache: 'no-store',
    })
  say(form, amount ? '' : 'Loading…')
  const answer = amount ? await buy(sale, amount, ask, (text) => say(form, text)) : await ask({})
  if (!answer.ok) throw await refusal(answer)
  const transaction = transactionOf(answer)
  say(form, transaction ? `Paid in transaction ${transaction}` : `${answer.status} ${answer.statusText}`)
  if (TEXT.test(answer.headers.get('content-type'))) show(form, await answer.text())
  else save(form, await answer.blob())
}

/**
 * The request that a form describes: its address, its body before it is encoded, and its input as the arguments of a tool.
 * Throws what is wrong with the input.
 */
function requestOf(form) {
  const { path, media: accepted = '', method = 'GET' } = form.dataset
  const [params, query, fields, files, input] = [{}, [], {}, {}, {}]
  let whole
  for (const field of form.elements) {
    const { part, value: type, whole: isWhole, fileOf } = field.dataset
    if (fileOf && field.files[0]) files[document.getElementById(fileOf).name] = field.files[0]
    if (!part || field.disabled || field.value === '') continue
    input[field.name] = valueOf(field, type)
    if (part === 'path') params[field.name] = field.value
    else if (part === 'query') query.push([field.name, field.value])
    else if (isWhole !== undefined) whole = input[field.name]
    else fields[field.name] = input[field.name]
  }
  const filled = path.replace(/\{([^}]+)\}/g, (braces, name) => encodeURIComponent(params[name] ?? braces))
  const search = new URLSearchParams(query).toString()
  const medias = accepted.split(' ').filter(Boolean)
  const [file] = Object.values(files)
  const media = file && medias.includes(MULTIPART) ? MULTIPART : medias[0]
  const body = file && media !== MULTIPART ? file : (whole ?? fields)
  return { method, url: filled + (search ? `?${search}` : ''), media, body, files, input }
}

function valueOf(field, type) {
  if (type === 'number') return Number(field.value)
  if (type === 'boolean') return field.value === 'true'
  if (type !== 'json' || field.dataset.part !== 'body') return field.value
  try {
    return JSON.parse(field.value)
  } catch (error) {
    const msg = `This is not JSON: ${error.message}`
    throw Object.assign(new Error(), { problems: [{ loc: ['body', field.name], msg }] })
  }
}

const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value))

function encode(media, body, files) {
  if (media === MULTIPART) {
    const form = new FormData()
    for (const [name, value] of Object.entries(body)) form.set(name, textOf(value))
    for (const [name, file] of Object.entries(files)) form.set(name, file)
    return form
  }
  if (media === 'application/x-www-form-urlencoded')
    return new URLSearchParams(Object.entries(body).map(([name, value]) => [name, textOf(value)]))
  return media === 'application/json' ? JSON.stringify(body) : body
}

async function refusal(answer) {
  const { message = answer.statusText, detail = [] } = await answer.json().catch(() => ({}))
  return Object.assign(new Error(`${answer.status}: ${message}`), { problems: detail })
}

function refuse(form, error) {
  areaOf(form).hidden = true
  const shown = Object.assign(new Error(messageFor(error)), { problems: error.problems })
  const named = ([part, name]) => form.querySelector(`[data-part="${part}"][name="${CSS.escape(name)}"]`)
  showProblems(form, shown, (loc) => named(loc) ?? form.querySelector(`[data-part="${loc[0]}"][data-whole]`))
}

/** Returns where a form shows what it got: what happened, a drawing of the answer, and the answer. */
function areaOf(form) {
  if (form.area) return form.area
  const area = document.createElement('section')
  area.className = 'answer'
  area.setAttribute('aria-label', 'Answer')
  area.innerHTML =
    '<p class="said" role="status"></p><div class="drawn"></div><pre tabindex="0" aria-label="Answer as text"><code></code></pre>'
  ;(document.getElementById(form.dataset.answer) ?? form).append(area)
  return (form.area = area)
}

function say(form, text) {
  const area = areaOf(form)
  area.hidden = false
  area.querySelector('.said').textContent = text
  area.querySelector('.drawn').replaceChildren()
  area.querySelector('pre').hidden = true
}

function show(form, text) {
  const area = areaOf(form)
  const pre = area.querySelector('pre')
  pre.hidden = false
  const whole = readable(text)
  pre.firstChild.textContent = whole.length > MAX_SHOWN ? `${whole.slice(0, MAX_SHOWN)}\n…` : whole
  area.scrollIntoView({ block: 'nearest' })
  // Without a drawing, the answer is there all the same.
  if (form.dataset.operation && whole !== text && text.length <= MAX_SHOWN) draw(form, area, text).catch(() => {})
}

/** Offers an answer that is no text as a file. */
function save(form, blob) {
  const link = Object.assign(document.createElement('a'), { href: URL.createObjectURL(blob), download: 'answer' })
  link.textContent = `Save the answer: ${blob.size} bytes of ${blob.type}`
  areaOf(form).querySelector('.drawn').append(link)
}

/** Has the gateway draw the answer, as far as it can be drawn. */
async function draw({ dataset }, area, text) {
  const headers = { accept: 'text/html', 'content-type': 'application/json' }
  const answer = await fetch(`/docs/${dataset.operation}/drawing`, { method: 'POST', headers, body: text })
  if (answer.ok) area.querySelector('.drawn').innerHTML = await answer.text()
}

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** The code of the page, which follows the form. */
const tabs = document.querySelector('.code-tabs')
const described = document.querySelector('form.call[data-operation]')
if (tabs && described) {
  const buttons = [...tabs.querySelectorAll('[data-language]')]
  const choose = (language) => {
    for (const button of buttons) button.setAttribute('aria-pressed', String(button.dataset.language === language))
    for (const part of tabs.querySelectorAll('[data-code]')) part.hidden = part.dataset.code !== language
  }
  for (const button of buttons) button.addEventListener('click', () => choose(button.dataset.language))
  tabs.querySelector('.tabs').hidden = false
  choose(buttons[0].dataset.language)
  described.addEventListener('input', () => refill(tabs))
  described.addEventListener('change', () => refill(tabs))
}

function refill(tabs) {
  const terms = JSON.parse(tabs.dataset.terms)
  let request
  try {
    request = requestOf(described)
  } catch {
    return
  }
  const { url, files } = request
  const body = request.body instanceof File ? `the content of ${request.body.name}` : request.body
  const names = Object.fromEntries(Object.entries(files).map(([name, file]) => [name, file.name]))
  const written = { ...request, body, url: terms.baseUrl + url, files: names }
  const isLong = body !== undefined && textOf(body).length > MAX_CODE
  const texts = {
    curl: () => curl(written),
    TypeScript: () => typescript(written, terms),
    Python: () => python(written),
    MCP: () => toolCall(terms.tool.name, { ...request.input, ...names }),
  }
  for (const part of tabs.querySelectorAll('[data-code]'))
    part.querySelector('code').textContent = isLong
      ? 'The body is too long to be shown as code.'
      : texts[part.dataset.code]()
}

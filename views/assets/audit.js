// Sends the ledger without leaving the page, and shows errors next to the form, which keeps its input. Without this
// script, the form redirects to the report, or back to the page with an error code.
const form = document.querySelector('form.audit-form')
const button = form.querySelector('button')
const alert = form.querySelector('[role=alert]')

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const label = button.textContent
  button.disabled = true
  button.textContent = 'Auditing…'
  alert.hidden = true
  send()
    .then((report) => location.assign(report), tell)
    .finally(() => {
      button.disabled = false
      button.textContent = label
    })
})

/** Returns the URL of the report. Does not send files that are too large: the connection would break before the answer. */
async function send() {
  const maxMegabytes = Number(form.dataset.mostMegabytes)
  for (const { files } of form.querySelectorAll('input[type=file]'))
    if (files[0]?.size > maxMegabytes * 1e6) throw new Error(`${files[0].name} is larger than ${maxMegabytes} MB.`)
  const answer = await fetch(form.action, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: new FormData(form),
  })
  const body = await answer.json()
  if (answer.ok) return body.report_url
  const problems = (body.detail ?? []).map(({ loc, msg }) => `${loc.slice(1).join(', ')}: ${msg}`)
  throw new Error(problems.join('\n') || body.message)
}

function tell(error) {
  alert.textContent = error instanceof TypeError ? 'The connection broke. Please try again.' : error.message
  alert.hidden = false
  alert.focus()
}

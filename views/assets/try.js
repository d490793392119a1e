// Shows the response of a free route below its form. Without this script, the form opens the response as a page.
for (const form of document.querySelectorAll('form.trial')) {
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const output = form.querySelector('output')
    output.hidden = false
    output.textContent = 'Loading…'
    ask(form).then(
      (answer) => (output.textContent = answer),
      (error) => (output.textContent = `The request failed: ${error.message}`),
    )
  })
}

async function ask(form) {
  const filled = [...new FormData(form)].filter(([, value]) => value !== '')
  const query = new URLSearchParams(filled).toString()
  const address = form.getAttribute('action') + (query ? `?${query}` : '')
  const answer = await fetch(address, { headers: { accept: 'application/json, text/plain' } })
  return `${answer.status} ${answer.statusText}\n\n${readable(await answer.text())}`
}

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

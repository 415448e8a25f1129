using System.Globalization;
using Kahuna.Tests.Client;
using OpenQA.Selenium;
using OpenQA.Selenium.Chrome;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>
/// A headless Chromium, that of Debian, with what a user of the page does and sees. Waits are on conditions. Owned by a
/// test or its collection; one thread at a time.
/// </summary>
public abstract class Chromium : IDisposable
{
    /// <summary>A directory for pictures of the page, for the documentation; unset: none are made.</summary>
    private const string PicturesVariable = "KAHUNA_PAGE_PICTURES";

    private ChromeDriver? _driver;

    public void Dispose()
    {
        _driver?.Dispose();
        Forget();
        GC.SuppressFinalize(this);
    }

    /// <summary>Drops what the browser needed; called once it has ended.</summary>
    private protected virtual void Forget()
    {
    }

    /// <summary>Starts the browser.</summary>
    /// <param name="program">
    /// What of it: its shell without windows takes a third less of the processors, the whole knows certificates.
    /// </param>
    /// <param name="home">Its home directory; null: that of this process.</param>
    /// <param name="preferences">What its profile begins with.</param>
    private protected async Task StartAsync(
        string program, string? home = null, params (string Name, object Value)[] preferences)
    {
        ChromeOptions options = new()
        {
            // Not what is in /usr/bin: a script there starts the shell and does not end it.
            BinaryLocation = "/usr/lib/chromium/" + program,
            AcceptInsecureCertificates = true,
        };
        options.AddArguments(
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1200,900");
        options.SetLoggingPreference(LogType.Browser, OpenQA.Selenium.LogLevel.All);
        options.UnhandledPromptBehavior = UnhandledPromptBehavior.Ignore;
        foreach ((string name, object value) in preferences)
        {
            options.AddUserProfilePreference(name, value);
        }

        ChromeDriverService service = ChromeDriverService.CreateDefaultService("/usr/bin", "chromedriver");
        if (home is not null)
        {
            service.DriverProcessStarting += (_, starting) =>
                starting.DriverServiceProcessStartInfo.Environment["HOME"] = home;
        }

        _driver = await Task.Run(() => new ChromeDriver(service, options, LastNet.Span));
    }

    /// <summary>Opens the page of a node anew, at a width and in colours.</summary>
    internal void Open(Uri node, string view = "", int width = 1_200, bool isDark = false)
    {
        _driver!.ExecuteCdpCommand("Emulation.setDeviceMetricsOverride", new Dictionary<string, object?>
        {
            ["width"] = width,
            ["height"] = 900,
            ["deviceScaleFactor"] = 1,
            ["mobile"] = false,
        });
        _driver.ExecuteCdpCommand("Emulation.setEmulatedMedia", new Dictionary<string, object?>
        {
            ["features"] = new[]
            {
                new Dictionary<string, object?>
                {
                    ["name"] = "prefers-color-scheme",
                    ["value"] = isDark ? "dark" : "light",
                },
            },
        });
        _driver.Navigate().GoToUrl("about:blank");
        _driver.Manage().Logs.GetLog(LogType.Browser);
        _driver.Navigate().GoToUrl(new Uri(node, "/ui" + view));
    }

    /// <summary>
    /// Waits for what an act of the user leads to. On a busy machine a node may lose its leader for a moment, and
    /// refuses the act; then it is repeated.
    /// </summary>
    internal Task DoneAsync(Func<bool> isDone, Action act) => UntilAsync(() =>
    {
        if (isDone())
        {
            return true;
        }

        if (Text("message").Contains("ry again", StringComparison.Ordinal))
        {
            Run("document.getElementById('message').textContent = ''");
            act();
        }

        return false;
    });

    /// <summary>Fills in the form for a user and sends it.</summary>
    internal async Task EnterAsync(string user, string password)
    {
        await UntilAsync(() => IsShown("sign-in"));
        Type("user", user);
        Type("password", password);
        Click("enter");
    }

    internal void Type(string id, string text)
    {
        IWebElement field = Find(id);
        field.Clear();
        field.SendKeys(text);
    }

    internal void Click(string id) => Find(id).Click();

    /// <summary>Sends keys to the element that has the focus.</summary>
    internal void Press(string keys) => _driver!.SwitchTo().ActiveElement().SendKeys(keys);

    /// <summary>The id of the element that has the focus.</summary>
    internal string? Focused => (string?)Run("return document.activeElement?.id");

    /// <summary>What a user reads in an element.</summary>
    internal string Text(string id) => Find(id).Text;

    internal bool IsShown(string id) => Find(id).Displayed;

    /// <summary>Runs a script of the test, which the policy of the page does not concern.</summary>
    internal object? Run(string script) => _driver!.ExecuteScript(script);

    /// <summary>
    /// Has the page get an answer of the test from now on when it asks for a path, until it is opened anew.
    /// </summary>
    internal void Answer(string path, string json) => _driver!.ExecuteScript(
        """
        const answers = window.answersOfTest ??= new Map();
        answers.set(arguments[0], arguments[1]);
        if (window.fetchOfBrowser === undefined) {
          window.fetchOfBrowser = window.fetch;
          window.fetch = (path, settings) => {
            const name = String(path).split('?')[0];
            return answers.has(name) ? Promise.resolve(new Response(answers.get(name)))
              : window.fetchOfBrowser(path, settings);
          };
        }
        """,
        path,
        json);

    /// <summary>Elements and listeners in the browser, and bytes of its heap, once what is not used has gone.</summary>
    internal (long Nodes, long Listeners, double HeapBytes) Memory()
    {
        ChromeDriver driver = _driver!;
        driver.ExecuteCdpCommand("HeapProfiler.collectGarbage", []);
        Dictionary<string, object?> counters = (Dictionary<string, object?>)driver.ExecuteCdpCommand(
            "Memory.getDOMCounters", [])!;
        Dictionary<string, object?> heap = (Dictionary<string, object?>)driver.ExecuteCdpCommand(
            "Runtime.getHeapUsage", [])!;
        return (
            Convert.ToInt64(counters["nodes"], CultureInfo.InvariantCulture),
            Convert.ToInt64(counters["jsEventListeners"], CultureInfo.InvariantCulture),
            Convert.ToDouble(heap["usedSize"], CultureInfo.InvariantCulture));
    }

    /// <summary>Whether a dialog is open.</summary>
    internal bool HasDialog
    {
        get
        {
            try
            {
                _driver!.SwitchTo().Alert();
                return true;
            }
            catch (NoAlertPresentException)
            {
                return false;
            }
        }
    }

    /// <summary>What the browser has reported since the page was opened, but answers that are errors.</summary>
    internal IReadOnlyList<string> Reports() =>
    [
        .. _driver!.Manage().Logs.GetLog(LogType.Browser).Select(static entry => entry.Message)
            .Where(static message => !message.Contains("Failed to load resource", StringComparison.Ordinal)),
    ];

    /// <summary>Waits for a condition; the page changes meanwhile.</summary>
    internal static Task UntilAsync(Func<bool> condition) => Wait.UntilAsync(async () =>
    {
        await Task.Delay(20);
        try
        {
            return condition();
        }
        catch (WebDriverException)
        {
            // An element has just been replaced.
            return false;
        }
    });

    /// <summary>Keeps a picture of the page, if somebody wants it.</summary>
    internal void Picture(string name)
    {
        if (Environment.GetEnvironmentVariable(PicturesVariable) is { Length: > 0 } directory)
        {
            _driver!.GetScreenshot().SaveAsFile(Path.Combine(directory, name + ".png"));
        }
    }

    private IWebElement Find(string id) => _driver!.FindElement(By.Id(id));
}

using Kahuna.Tests.Tools.Reporting;

namespace Kahuna.Tests.Tools.Scale;

/// <summary>
/// Prints each section when it is there, with its floors, and keeps the JSON file up to date. Owned by
/// <see cref="ScaleCommand"/>; one thread.
/// </summary>
internal sealed class ScaleReport
{
    public const int ValueBytes = 128;

    private readonly TextWriter _output;
    private readonly ScaleFigures _figures;
    private readonly string _file;
    private string _section = "";

    /// <param name="output">Where it is printed.</param>
    /// <param name="figures">Where the sections are added.</param>
    /// <param name="file">Where it is written as JSON; empty: nowhere.</param>
    public ScaleReport(TextWriter output, ScaleFigures figures, string file)
    {
        (_output, _figures, _file) = (output, figures, file);
        output.WriteLine(figures.Machine);
        output.WriteLine($"date   : {figures.Machine.Date}");
    }

    public void Add(string section, SectionResult result)
    {
        _section = section;
        _figures.Sections[section] = result;
        result.Print(this);
        _output.Flush();
        ReportFile.Write(_file, _figures);
    }

    public void Table(FormattableString title, TextColumn[] columns, IEnumerable<object?[]> rows) =>
        TextTable.Write(_output, FormattableString.Invariant(title), columns, rows);

    public void Line(FormattableString line) => _output.Line(line);

    /// <summary>One line under a table.</summary>
    public void Floor(FormattableString what, double? value, Limit limit)
    {
        string name = FormattableString.Invariant(what);
        if (value is not { } measured)
        {
            _output.Line($"  {name,-62} not measured");
            return;
        }

        bool ok = limit.IsReached(measured);
        _figures.Floors.Add(new ScaleFloor(_section, name)
        {
            Value = measured,
            Direction = limit.Direction,
            Limit = limit.Value,
            Ok = ok,
        });
        _output.Line($"  {name,-62} {measured,8:F2}  {limit.Direction} {limit.Value,6:F2}  {(ok ? "ok" : "BELOW")}");
    }

    /// <summary>A floor that holds or does not.</summary>
    public void Fact(FormattableString what, bool holds)
    {
        string name = FormattableString.Invariant(what);
        _figures.Floors.Add(new ScaleFloor(_section, name) { Ok = holds });
        _output.Line($"  {name,-62} {(holds ? "yes" : "no"),8}  {"",-15}  {(holds ? "ok" : "BELOW")}");
    }
}
